package facts

// A Detail is a fact with its sentence, as a stored verdict has it.
type Detail struct {
	Kind  string `json:"kind"`            // one of the constants, such as DetailSlowTail
	Shape string `json:"shape,omitempty"` // that it is about, as people read it
	Text  string `json:"text"`
}

// Details writes every fact.
func Details(all []Fact) []Detail {
	var details []Detail
	for _, f := range all {
		d := Detail{Text: f.Sentence()}
		switch about := f.(type) {
		case OfShape:
			d.Shape, f = about.Shape, about.Fact
		case KindsApart:
			d.Shape = about.Shape
		case Detectable:
			d.Shape = about.Shape
		case LostBy:
			d.Shape = about.Shape
		}
		d.Kind = kindOf(f)
		details = append(details, d)
	}
	return details
}
