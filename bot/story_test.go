package bot_test

import (
	"testing"

	"github.com/kernelgate/kernelgate/bot/fakehub"
)

func TestPass(t *testing.T) {
	w := newWorld(t, worldOptions{})
	pr := w.propose("faster", "// speed 1.3\n", fakehub.PROptions{})
	c := w.concluded(pr.HeadSHA(), "success")
	t.Log(c.Title)
	w.said(pr, "PASS")
	w.no(pr.Merge("olga"))
}
