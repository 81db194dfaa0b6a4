package cli

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// soakPeople are the authors.
type soakPeople struct {
	s   *soak
	all sync.WaitGroup
}

// startPeople opens the pull requests at random times, the last a little before the faults end.
func (s *soak) startPeople() *soakPeople {
	people := &soakPeople{s: s}
	rng := rand.New(rand.NewPCG(s.seed, 3))
	total := 0
	for _, k := range soakKinds {
		total += k.weight
	}
	people.all.Go(func() {
		gap := s.duration * 97 / 100 / time.Duration(s.pulls)
		for i := range s.pulls {
			n, k := rng.IntN(total), 0
			for ; n >= soakKinds[k].weight; k++ {
				n -= soakKinds[k].weight
			}
			p := &soakPull{s: s, kind: soakKinds[k].name, repo: s.repos[rng.IntN(len(s.repos))], id: fmt.Sprintf("change-%d", i), rng: rand.New(rand.NewPCG(s.seed, uint64(i)+100))}
			if !s.sleep(time.Until(s.begun.Add(gap*time.Duration(i) + time.Duration(rng.Int64N(int64(gap)))))) {
				return
			}
			people.all.Go(func() {
				if err := soakKinds[k].play(p); err != nil && s.ctx.Err() == nil {
					s.fail("%s, %s: %v", p.id, p.kind, err)
				}
			})
		}
	})
	return people
}

// settleWithin is how long everything may take after the last fault is repaired.
const settleWithin = 5 * time.Minute

// end waits until everybody has done what they wanted. If a verdict is missing, they give up with the soak.
func (people *soakPeople) end(deadline time.Time) {
	done := make(chan struct{})
	go func() {
		people.all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Until(deadline)):
		people.s.fail("some people still wait for a verdict %v after the faults", settleWithin)
	}
}

// pullsNow returns all pull requests so far.
func (s *soak) pullsNow() []*soakPull {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*soakPull(nil), s.all...)
}

// settle waits until every pull request is as expected and no job is left, and looks again later: what is right must stay right.
func (s *soak) settle(deadline time.Time) {
	for right := 0; right < 2; {
		wrong := s.unsettled()
		if len(wrong) == 0 {
			right++
			s.sleep(10 * time.Second)
			continue
		}
		right = 0
		if time.Now().After(deadline) || !s.sleep(time.Second) {
			for _, text := range wrong {
				s.fail("%s", text)
			}
			return
		}
	}
}

func (s *soak) unsettled() (wrong []string) {
	for _, p := range s.pullsNow() {
		if text := p.wrong(); text != "" {
			wrong = append(wrong, p.String()+": "+text)
		}
	}
	jobs := 0.0
	for _, b := range s.bots {
		if m, err := scrape(s.ctx, b.url); err == nil && m.value("kernelgate_leads") == 1 {
			jobs += m.labelled("kernelgate_queue_jobs", "", "")
		}
	}
	if jobs > 0 {
		wrong = append(wrong, fmt.Sprintf("%.0f jobs are left", jobs))
	}
	return wrong
}

// summary counts pull requests for the line of progress.
func (s *soak) summary() string {
	all := s.pullsNow()
	right := 0
	for _, p := range all {
		if p.wrong() == "" {
			right++
		}
	}
	return fmt.Sprintf("%d of %d pull requests opened, %d as they must be", len(all), s.pulls, right)
}
