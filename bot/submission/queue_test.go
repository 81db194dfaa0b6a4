package submission

import (
	"slices"
	"testing"
)

// Owners take turns, whoever has submitted more.
func TestOwnersTakeTurns(t *testing.T) {
	s := &Service{changed: make(chan struct{})}
	for _, one := range [][2]string{{"a1", "ann"}, {"a2", "ann"}, {"a3", "ann"}, {"b1", "bob"}, {"c1", "cy"}, {"b2", "bob"}} {
		s.all = append(s.all, &Submission{Handle: one[0], Token: one[1], State: Queued})
	}
	if st := s.status("a2"); st.Ahead != 3 {
		t.Errorf("%d are before ann's second", st.Ahead)
	}
	var order []string
	for one := s.next(); one != nil; one = s.next() {
		order = append(order, one.Handle)
		one.State = Done
		if one.Handle == "b1" { // a newcomer does not wait for those who were served
			s.all = append(s.all, &Submission{Handle: "d1", Token: "dan", State: Queued})
		}
	}
	if want := []string{"a1", "b1", "c1", "d1", "a2", "b2", "a3"}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
}
