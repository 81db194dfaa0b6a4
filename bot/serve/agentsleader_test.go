package serve_test

import (
	"cmp"
	"encoding/json"
	"errors"
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

// A tried is one thing that an agent has submitted, and what came of it.
type tried struct {
	key, intent, source, handle string
	got                         answer
}

// An asker is an agent that submits one thing after another.
type asker struct {
	*bots
	name  string
	tried []tried
	spent float64 // claims, as it was told last
}

// submit submits at both bots at the same time, and takes it to its verdict.
func (a *asker) submit(n int, intent, source string) error {
	one := tried{key: fmt.Sprintf("%s-%d", a.name, n), intent: intent, source: source}
	arguments := files(intent, source)
	arguments["idempotency_key"] = one.key
	answers, errs := make([]answer, len(a.all)), make([]error, len(a.all))
	var both sync.WaitGroup
	for i := range a.all {
		both.Go(func() { answers[i], errs[i] = a.ask(i, a.name, "submit", arguments) })
	}
	both.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, got := range answers {
		if got.IsError {
			return fmt.Errorf("%s is refused: %s", one.key, got.Text)
		}
		handle, _ := got.Data["handle"].(string)
		if one.handle = cmp.Or(one.handle, handle); handle == "" || handle != one.handle {
			return fmt.Errorf("%s is %q at one bot and %q at the other", one.key, one.handle, handle)
		}
	}
	for at := n; ; at++ {
		got, err := a.ask(at, a.name, "status", map[string]any{"handle": one.handle, "wait_seconds": 1})
		if err != nil || got.IsError {
			return fmt.Errorf("the status of %s: %s %v", one.key, got.Text, err)
		}
		if got.Data["state"] == "done" {
			break
		}
	}
	var err error
	if one.got, err = a.ask(n, a.name, "verdict", map[string]any{"handle": one.handle}); err != nil || one.got.IsError {
		return fmt.Errorf("the verdict on %s: %s %v", one.key, one.got.Text, err)
	}
	if b, ok := one.got.Data["budget"].(map[string]any); ok {
		a.spent = max(a.spent, b["claims_spent"].(float64))
	}
	a.tried = append(a.tried, one)
	return a.remembered()
}

// remembered asks both bots for what the agent was told before. No answer may be older.
func (a *asker) remembered() error {
	for at := range a.all {
		for _, one := range a.tried {
			st, err := a.ask(at, a.name, "status", map[string]any{"handle": one.handle})
			if err != nil || st.Data["state"] != "done" {
				return fmt.Errorf("%s was done, and is %s %v", one.key, st.Text, err)
			}
			if got, err := a.ask(at, a.name, "verdict", map[string]any{"handle": one.handle}); err != nil || got.Text != one.got.Text {
				return fmt.Errorf("the verdict on %s was\n%s\nand is\n%s %v", one.key, one.got.Text, got.Text, err)
			}
		}
		h, err := a.ask(at, a.name, "history", nil)
		if err != nil {
			return err
		}
		for _, one := range a.tried {
			if strings.Count(h.Text, one.handle) != 1 || strings.Contains(h.Text, one.handle+", "+one.intent+": queued") {
				return fmt.Errorf("the history of %s does not have %s once, as done:\n%s", a.name, one.key, h.Text)
			}
		}
		d, err := a.ask(at, a.name, "describe", map[string]any{"kernel": "scale"})
		if err != nil || d.IsError {
			return fmt.Errorf("describing: %s %v", d.Text, err)
		}
		if spent := d.Data["budget"].(map[string]any)["claims_spent"].(float64); spent < a.spent {
			return fmt.Errorf("%g claims were spent, and now %g", a.spent, spent)
		}
	}
	return nil
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
