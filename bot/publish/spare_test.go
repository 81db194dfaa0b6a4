package publish_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/github/embedded"
	"github.com/kernelgate/kernelgate/bot/present"
	"github.com/kernelgate/kernelgate/bot/publish"
)

// Where GitHub allows few writes, those about a running measurement are left out, and verdicts are not. A workflow leaves out nothing.
func TestSpareWrites(t *testing.T) {
	for name, c := range map[string]struct {
		runs, lenient bool
		spared        bool
	}{
		"running": {true, false, true}, "running in a workflow": {true, true, false}, "a verdict": {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if f := w.state.Facts; c.runs {
				w.apply(change.Planned{Plan: change.Plan{Key: f.PlanKey(), Head: f.Head, Check: "kernelgate", Kernels: []change.Kernel{
					{KernelSpec: change.KernelSpec{Name: "scale", Folder: "kernels/scale", Sources: "other", Labels: []string{"l4"}}},
				}}})
			}
			key, err := testKey()
			w.no(err)
			app, err := w.hub.CreateApp(embedded.AppOptions{Slug: "gate", Key: key})
			w.no(err)
			in, err := app.Install(w.repo)
			w.no(err)
			// Of six writes an hour one in ten minutes may be spare.
			h, err := client.NewToken(in.Token(), client.Options{Checks: true, BaseURL: w.hub.URL(), ContentPerHour: 6, Sleep: func(context.Context, time.Duration) error { return nil }})
			w.no(err)
			out, err := (&publish.Publisher{GitHub: h, Lenient: c.lenient}).Publish(t.Context(), present.View{State: w.state})
			if errors.Is(err, client.ErrShed) != c.spared || !c.spared && err != nil || out.Complete == c.spared {
				t.Errorf("complete: %v, %v", out.Complete, err)
			}
			if out.Replies["comment-1"] == 0 {
				t.Error("the reply was left out")
			}
		})
	}
}
