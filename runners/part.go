package runners

import "fmt"

// A Part is how much of a policy a job is asked. The zero value is all of it.
type Part string

const (
	PartProbe   Part = "probe"   // a first look: nothing secret, and as few rounds as may decide
	PartStatic  Part = "static"  // compile and read resources: nothing is run
	PartExplain Part = "explain" // profile both sides on the job's shapes, for somebody who asks why their times differ
)

// Ask narrows the policy of the job to a part. The text of the policy stays whole, so a job that travels
// says which part it is asked.
func (j *Job) Ask(p Part) error {
	switch p {
	case "":
	case PartProbe:
		j.Policy = j.Policy.Probe()
	case PartStatic:
		j.Policy = j.Policy.Static()
	case PartExplain:
		j.Policy = j.Policy.OnlyExplain(j.Shapes)
	default:
		return fmt.Errorf("%q is no part of a policy that this version can ask", p)
	}
	j.Part = p
	return nil
}
