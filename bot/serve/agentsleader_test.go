package serve_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kernelgate/kernelgate/bot/store/journal"
	"github.com/kernelgate/kernelgate/internal/long"
)

// Agents submit to two bots, and the one that leads is killed or stopped: at the answer that says that a claim was counted, at the answer
// to a submission, and at moments that a seed chooses. Every submission ends as it would have, every claim is counted once,
// and no answer is older than one before.
func TestAgentsWhileLeadersDie(t *testing.T) {
	t.Parallel()
	for seed := range uint64(long.Times(1, 12)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { agentsWhileLeadersDie(t, seed) })
	}
}

func agentsWhileLeadersDie(t *testing.T, seed uint64) {
	a := agentsWithoutServer(t)
	names := []string{"ann", "bob", "cy"}
	a.allow("ann olga/kernels", "bob olga/kernels", "cy olga/kernels")
	b := newBots(a)
	dice := rand.New(rand.NewPCG(seed, 7))
	kinds := []string{"submit", "earlier", "begin", "result", "status", "lease", "bundle"}
	dice.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	if seed == 0 {
		kinds = []string{"earlier", "submit"}
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	askers := make([]*asker, len(names))
	for i, name := range names {
		askers[i] = &asker{bots: b, name: name}
		all.Go(func() { askers[i].work(stop) })
	}
	for _, kind := range kinds {
		signal := syscall.SIGKILL
		if seed > 0 && dice.IntN(3) == 0 {
			signal = syscall.SIGSTOP
		}
		t.Log(b.fault(dice, signal, kind))
	}
	close(stop)
	all.Wait()
	for _, one := range askers {
		one.settled(b.claimed())
	}
}

// work submits until stop is closed, and then once more.
func (a *asker) work(stop <-chan struct{}) {
	for n, last := 0, false; !last; n++ {
		select {
		case <-stop:
			last = true
		default:
		}
		speed, intent := "speed 1.5", "claim"
		switch n % 4 {
		case 1:
			intent = "probe"
		case 2:
			speed = "WRONG speed 1.5"
		}
		source := fmt.Sprintf("// %s\nint x%d;\n", speed, n)
		if n%4 == 3 { // the machine code of the claim before
			source = a.tried[n-1].source + "/* again */\n"
		}
		if err := a.submit(n, intent, source); err != nil {
			a.Errorf("%s: %v", a.name, err)
			return
		}
	}
}

// claimed is the claims of each agent in the journal, as handle and code.
func (b *bots) claimed() map[string][][2]string {
	b.Helper()
	j, err := journal.Open(b.ctx, journal.Options{URL: b.nats})
	b.no(err)
	defer j.Close()
	all := map[string][][2]string{}
	_, err = j.Replay(b.ctx, 0, func(e journal.Event) error {
		if e.Kind != "submission_claimed" {
			return nil
		}
		var c struct{ Handle, Token, Code string }
		err := json.Unmarshal(e.Data, &c)
		all[c.Token] = append(all[c.Token], [2]string{c.Handle, c.Code})
		return err
	})
	b.no(err)
	return all
}

// settled compares what an agent was told with what its sources say, and with the claims that were counted.
func (a *asker) settled(claims map[string][][2]string) {
	a.Helper()
	counted, codes, handles := map[[2]string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range claims[a.name] {
		if counted[c] {
			a.Errorf("%s: the claim %s is counted twice", a.name, c[0])
		}
		counted[c], codes[c[1]], handles[c[0]] = true, true, true
	}
	distinct := 0
	for n, one := range a.tried {
		want := map[string]string{"claim": "PASS", "probe": "DEFER"}[one.intent]
		if strings.Contains(one.source, "WRONG") {
			want = "DEFER"
		}
		if one.got.Data["outcome"] != want || one.got.Data["outcome"] == "DEFER" && one.got.Data["reason"] != "probe" && one.got.Data["reason"] != "correctness" {
			a.Errorf("%s: %s of %q ends as %s", a.name, one.intent, one.source, one.got.Text)
		}
		if one.intent == "claim" && n%4 != 3 {
			distinct++
			if !handles[one.handle] {
				a.Errorf("%s: the claim %s is not counted", a.name, one.key)
			}
		}
	}
	if len(codes) != distinct || a.spent != float64(distinct) {
		a.Errorf("%s has claimed %d machine codes; %d are counted, and it was told %g", a.name, distinct, len(codes), a.spent)
	}
	if err := a.remembered(); err != nil {
		a.Errorf("%s at the end: %v", a.name, err)
	}
}
