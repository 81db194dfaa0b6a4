package toolchain

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
)

// The build that is measured runs Here. It must give the machine code of builds elsewhere. A source
// that could name their surroundings would give the right code there and a wrong one in a merge, so
// they are drawn at random for every run, from the seed of the run.

// Here is where the build runs that is measured.
var Here = Surroundings{
	Name: "here", Root: "/repository", work: "/build", host: "sandbox", sets: "/sets", tmp: "/scratch", guard: "/guard/guard.h",
	env: []string{"HOME=/scratch", "LOGNAME=kernelgate", backendsInTree}, python: []string{"-I", "-B"},
}

// Elsewhere draws the surroundings of a second build. In them, no compiler knows the names of files
// (see guard.go): a source that compiles there cannot depend on its path.
func Elsewhere(seed uint64) Surroundings {
	rng := rand.New(rand.NewPCG(seed, 7))
	word := func() string { return drawnWord(rng) }
	user := word()
	above := []string{"/home/" + user, "/root", "/builds/" + user, "/" + word()}
	root := path.Join(above[rng.IntN(len(above))], word())
	for range rng.IntN(3) {
		root = path.Join(root, word())
	}
	tmp := "/" + word() + "/" + word()
	// Any second from 1990 to 2089.
	epoch := 631152000 + rng.Int64N(100*365*24*3600)
	flags := [][]string{{"-E", "-s"}, {"-s", "-E", "-B"}, {"-E", "-s", "-u"}}
	return Surroundings{
		Name: "elsewhere", Root: root, work: "/" + word() + "/" + word(), host: word(), sets: "/" + word() + "/" + word(), tmp: tmp, guard: "/" + word() + "/" + word() + ".h",
		nameless: true, given: byFullPath, forks: 8 + rng.IntN(56), python: flags[rng.IntN(len(flags))],
		env: []string{
			"HOME=" + path.Join(tmp, user), "USER=" + user, "LOGNAME=" + user, "CI=true", strings.ToUpper(word()) + "=" + word(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch),
		},
	}
}

// ByName returns the surroundings of a source that uses the names of files, as assert does. There is
// no way to see what it uses them for, so it is built in each way in which builds name files: by the
// full path, and from the repository's top; Here, it is built from its own folder.
func (s Surroundings) ByName() []Surroundings {
	full, top := s, s
	full.nameless, top.nameless = false, false
	full.Name, full.given = "elsewhere, by its full path", byFullPath
	top.Name, top.given = "elsewhere, from the top", fromTop
	return []Surroundings{full, top}
}

// String says what a source could see, so that people can reproduce a refusal.
func (s Surroundings) String() string {
	text := fmt.Sprintf("in %s on the host %s", s.Root, s.host)
	switch s.given {
	case byFullPath:
		text += ", by its full path"
	case fromTop:
		text += ", by its path from the repository's top"
	}
	for _, v := range s.env {
		text += ", with " + v
	}
	return text
}

// drawnWord draws a word that nobody guesses: 36⁸ are possible.
func drawnWord(rng *rand.Rand) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	const more = letters + "0123456789"
	word := []byte{letters[rng.IntN(len(letters))]}
	for range 8 {
		word = append(word, more[rng.IntN(len(more))])
	}
	return string(word)
}
