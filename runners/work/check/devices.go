package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/runners"
)

// forDevice names the device that a run on this machine is for, if the policy asks for a verdict on
// each of several, and says in a note what the verdict says nothing about.
func forDevice(job *runners.Job, labels []string) {
	d := job.Policy.Devices
	each := d.Each()
	if len(each) == 0 {
		return
	}
	if i := slices.IndexFunc(each, func(device string) bool { return slices.Contains(labels, device) }); i >= 0 {
		job.Provenance.Label = each[i]
	}
	others := describeDevices(d, slices.DeleteFunc(each, func(device string) bool { return device == job.Provenance.Label }))
	has := ""
	if len(labels) > 0 {
		has = " (its labels: " + strings.Join(labels, ", ") + ")"
	}
	note := ""
	switch {
	case others == "":
	case job.Provenance.Label != "":
		note = fmt.Sprintf("This verdict holds for %s only. The policy also asks for %s, which this run on this machine%s cannot tell.", job.Provenance.Label, others, has)
	default:
		note = fmt.Sprintf("This verdict holds for none of the policy's devices: it asks for %s, and this machine is none of them%s.", others, has)
	}
	if note != "" {
		job.Notes = append(slices.Clip(job.Notes), note)
	}
}

func describeDevices(d policy.Devices, devices []string) string {
	var words []string
	for _, device := range devices {
		word := "must pass"
		if d.Informs(device) {
			word = "informs"
		}
		words = append(words, device+" ("+word+")")
	}
	return strings.Join(words, ", ")
}
