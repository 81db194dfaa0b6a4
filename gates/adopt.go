package gates

import "github.com/kernelgate/kernelgate/gates/facts"

func (j *judgement) noteText(text string) { j.note(facts.Quote(text)) }

func (r *GateResult) adopt() {
	if r.Found == nil {
		r.Found = facts.Quote(r.Text)
	}
	if r.Details != nil {
		r.More = append(facts.Quotes(r.Details), r.More...)
	}
	if r.ToPass != nil {
		var steps []facts.Advice
		for _, t := range r.ToPass {
			steps = append(steps, facts.Stated{Fact: facts.Quote(t)})
		}
		r.Steps = append(steps, r.Steps...)
	}
}
