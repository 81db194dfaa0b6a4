package publish_test

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/github/client"
	"github.com/kernelgate/kernelgate/bot/publish"
)

// Only the App that created a check can update it. One of a different App that stands for the same
// change is left alone, ours is created, and comments and further checks are written as ever.
func TestCheckOfAnotherApp(t *testing.T) {
	for name, known := range map[string]bool{"found by its name": false, "known by its number": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			theirs, err := w.token("other", nil).CreateCheck(t.Context(), "olga/kernels", client.Check{Name: "kernelgate", HeadSHA: w.pr.HeadSHA(),
				ExternalID: w.state.ID.String(), Status: "in_progress", Title: "Theirs", Summary: "Theirs"})
			w.no(err)
			if known {
				w.apply(change.Published{Checks: map[string]change.Posted{change.CheckKey("kernelgate", w.pr.HeadSHA()): {ID: theirs}}})
			}
			p := &publish.Publisher{GitHub: w.token("gate", nil), Lenient: true}
			w.no(w.publish(p, true))
			if len(p.Denied) != 0 || !p.MayCheck() {
				t.Errorf("denied: %v", p.Denied)
			}
			all := w.named("kernelgate")
			if len(all) != 2 || all[0].Title != "Theirs" || all[0].Status != "in_progress" || all[1].Conclusion != "success" {
				t.Fatalf("the checks are %+v", all)
			}
			if got := w.state.Checks[change.CheckKey("kernelgate", w.pr.HeadSHA())]; got.ID != all[1].ID {
				t.Errorf("noted %+v, want %d", got, all[1].ID)
			}
			if n := len(w.named("kernelgate / scale")); n != 1 {
				t.Errorf("%d checks of the kernel, want 1", n)
			}
		})
	}
}
