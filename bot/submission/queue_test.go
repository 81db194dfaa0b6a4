package submission

import (
	"slices"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/result"
)

// localForTest measures nothing.
func localForTest() *Local {
	l := &Local{}
	l.Service = newService(l, time.Now, nil)
	return l
}

// ended is a submission with any result.
func (s *Submission) ended() *Submission {
	done := new(*s)
	done.State, done.Result = Done, &result.Result{Outcome: gates.Defer}
	return done
}

// Owners take turns, whoever has submitted more.
func TestOwnersTakeTurns(t *testing.T) {
	s := localForTest()
	for _, one := range [][2]string{{"a1", "ann"}, {"a2", "ann"}, {"a3", "ann"}, {"b1", "bob"}, {"c1", "cy"}, {"b2", "bob"}} {
		s.all = append(s.all, &Submission{Handle: one[0], Token: one[1], State: Queued})
	}
	if st := s.status(s.known("ann", "a2")); st.Ahead != 3 {
		t.Errorf("%d are before ann's second", st.Ahead)
	}
	var order []string
	for one := s.next(); one != nil; one = s.next() {
		order = append(order, one.Handle)
		s.done(one.ended())
		if one.Handle == "b1" { // a newcomer does not wait for those who were served
			s.all = append(s.all, &Submission{Handle: "d1", Token: "dan", State: Queued})
		}
	}
	if want := []string{"a1", "b1", "c1", "d1", "a2", "b2", "a3"}; !slices.Equal(order, want) {
		t.Errorf("the order is %q, want %q", order, want)
	}
}
