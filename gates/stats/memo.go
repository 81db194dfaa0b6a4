package stats

import "slices"

// A question is what draws were asked about. Its samples are copies: nobody changes them afterwards.
type question struct {
	kind string
	q    float64
	a, b Sample
}

// A memo holds the last answers. A verdict asks the same again at every look, and once more for all samples where none was
// disturbed, and to compare a sample with those of before takes a thousandth of the time of resampling it.
type memo struct {
	asked   []question
	answers []*Distribution
	next    int // is replaced
}

const remembered = 64

// answer is the answer of before, or a new one.
func (m *memo) answer(kind string, q float64, a, b Sample, find func() (*Distribution, error)) (*Distribution, error) {
	for i := range m.asked {
		if was := &m.asked[i]; was.q == q && was.kind == kind && was.a.same(a) && was.b.same(b) {
			return m.answers[i], nil
		}
	}
	d, err := find()
	if err != nil {
		return nil, err
	}
	if len(m.asked) < remembered {
		m.asked, m.answers = append(m.asked, question{}), append(m.answers, nil)
	}
	m.asked[m.next], m.answers[m.next] = question{kind, q, a.clone(), b.clone()}, d
	m.next = (m.next + 1) % remembered
	return d, nil
}

func (s Sample) same(other Sample) bool {
	return slices.EqualFunc(s.Rounds, other.Rounds, slices.Equal)
}

func (s Sample) clone() Sample {
	c := Sample{Rounds: make([][]float64, len(s.Rounds))}
	for i, round := range s.Rounds {
		c.Rounds[i] = slices.Clone(round)
	}
	return c
}
