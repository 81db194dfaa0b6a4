package controller_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/github/embedded"
)

// chooses is a manifest with two variants and a choice between them.
func chooses(when string) string {
	return strings.Replace(manifestYAML, "source: scale.c\n", "", 1) + fmt.Sprintf("variants: {any: {source: any.c}, eight: {source: eight.c}}\nchoose: [{when: %q, variant: eight}, {variant: any}]\n", when)
}

// An author whose first push was measured edits only the condition of choose. It is equal at
// the shapes and wherever the bot tries expressions, and different at most other sizes. The
// evidence of the first push does not hold for that, and the new run is the next attempt at
// the same machine code. Written as before, the kernel has its first evidence again. A choice
// that differs where the bot tries it counts as the second machine code of the change.
func TestEvidenceHoldsForOneChoice(t *testing.T) {
	const when, file = "N % 8 == 0", "kernels/scale/kernel.yaml"
	w := newWorld(t, worldOptions{retold: true})
	_, err := w.repo.Push("main", map[string]string{file: chooses(when), "kernels/scale/any.c": "// 1\n", "kernels/scale/eight.c": "// 1\n"}, "Choose")
	w.no(err)
	_, err = w.repo.Push("choose", map[string]string{"kernels/scale/any.c": "// 2\n", "kernels/scale/eight.c": "// 2\n"}, "Better")
	w.no(err)
	pr, err := w.repo.OpenPR(embedded.PROptions{Head: "choose", Title: "Better", Author: "walt", Labels: []string{"refactoring"}})
	w.no(err)
	w.concluded(pr.HeadSHA(), "success")
	w.expect("the first push", w.attempts(pr.HeadSHA()), "111111")

	w.expect("equal where the bot tries it", w.attempts(w.push(pr, "choose", file, chooses(when+" || N > 100 && N < 102"), "success")), "222222")
	w.expect("written as before", w.attempts(w.push(pr, "choose", file, chooses(when), "success")), "111111")
	w.expect("another choice where the bot tries it", w.attempts(w.push(pr, "choose", file, chooses(when+" || N > 20 && N < 400"), "success")), "11111111")
	w.said(pr, "machine code 2")
}
