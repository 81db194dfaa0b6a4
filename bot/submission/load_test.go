package submission

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/kernelgate/kernelgate/gates/result"
)

// TestManyPoll lets 200 agents wait for the submissions of 20 owners. Everybody hears of the end, and
// each owner gets their turn in every lap.
func TestManyPoll(t *testing.T) {
	const owners, each, readers = 20, 4, 10
	s := localForTest()
	for n := range each {
		for o := range owners {
			s.all = append(s.all, &Submission{Handle: fmt.Sprintf("%06d%06d", o, n), Token: fmt.Sprint(o), Kernel: "k", Intent: result.Probe, State: Queued})
		}
	}
	var waiting sync.WaitGroup
	ended := make(chan error, owners*readers)
	for o := range owners {
		for range readers {
			waiting.Go(func() {
				for n := range each {
					st, err := s.Wait(context.Background(), fmt.Sprint(o), fmt.Sprintf("%06d%06d", o, n), func(Status) {})
					if err != nil || st.State != Done {
						ended <- fmt.Errorf("owner %d: %+v, %w", o, st, err)
						return
					}
				}
				ended <- nil
			})
		}
	}
	for lap := range each {
		served := map[string]bool{}
		for range owners {
			one := s.next()
			served[one.Token] = true
			s.done(one.ended())
		}
		if len(served) != owners {
			t.Errorf("lap %d serves %d owners of %d", lap, len(served), owners)
		}
	}
	waiting.Wait()
	for range owners * readers {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
