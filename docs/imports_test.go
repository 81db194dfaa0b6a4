package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layers are the top folders, from the bottom to the top. A package imports only packages in its
// own folder and below, and gates none of kernels: a verdict depends on the evidence and the policy, and not on a manifest.
var layers = []string{"policies", "kernels", "gates", "runners", "bot"}

// TestImportsRunOneWay checks that imports run one way, in tests, too: a gate knows nothing about
// the bot that calls it.
func TestImportsRunOneWay(t *testing.T) {
	const module = "github.com/kernelgate/kernelgate/"
	layer := func(path string) int {
		top, _, _ := strings.Cut(strings.TrimPrefix(path, module), "/")
		return slices.Index(layers, top)
	}
	list, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := 0
	for dec := json.NewDecoder(bytes.NewReader(list)); ; packages++ {
		var p struct {
			ImportPath                         string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		own := layer(p.ImportPath)
		if own < 0 {
			continue // the program itself
		}
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			switch {
			case path+"/" == module:
				t.Errorf("%s imports the program's main package", p.ImportPath)
			case strings.HasPrefix(path, module) && layer(path) > own:
				t.Errorf("%s imports %s, which is above it (the order is %s)", p.ImportPath, path, strings.Join(layers, ", "))
			case own == slices.Index(layers, "gates") && layer(path) == slices.Index(layers, "kernels"):
				t.Errorf("%s imports %s: gates imports only policies", p.ImportPath, path)
			}
		}
	}
	if packages < 50 {
		t.Errorf("go list named %d packages, too few to be the whole tree", packages)
	}
}

// rooms are the folders of runners, from the bottom to the top: a package imports only packages in its own
// room and in those before it. Packages that are in none have the words that all of them share.
var rooms = []string{"host", "build", "backend", "gather", "work"}

// TestRoomsOfRunners checks that no import of runners leads upwards. Tests may: a backend is tested by
// having evidence gathered.
func TestRoomsOfRunners(t *testing.T) {
	const module = "github.com/kernelgate/kernelgate/runners"
	room := func(path string) int {
		first, _, _ := strings.Cut(strings.TrimPrefix(path, module+"/"), "/")
		return slices.Index(rooms, first)
	}
	list, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./runners/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	seen := map[int]int{}
	for line := range strings.Lines(string(list)) {
		paths := strings.Fields(line)
		own := room(paths[0])
		seen[own]++
		for _, path := range paths[1:] {
			if strings.HasPrefix(path, module) && room(path) > own {
				t.Errorf("%s imports %s, which is above it (the order is %s)", paths[0], path, strings.Join(rooms, ", "))
			}
		}
	}
	for i, name := range rooms {
		if seen[i] < 2 {
			t.Errorf("runners/%s has %d packages, too few to be the room", name, seen[i])
		}
	}
}

// TestBotLinksNoBackend checks that what plans, decides, writes and publishes links nothing that runs a kernel: the bot handles
// what others wrote, and must not be able to execute it.
func TestBotLinksNoBackend(t *testing.T) {
	const runs = "^github.com/kernelgate/kernelgate/runners/(host/sandbox|build/(pyref|toolchain)|backend/(cpu|cuda|command)|gather/measure|work/(arm|tune|bisect))$"
	forbidden := regexp.MustCompile(runs)
	for _, name := range []string{"planner", "controller", "publish", "present", "answer"} {
		list, err := exec.Command("go", "list", "-deps", "./bot/"+name).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all := strings.Fields(string(list))
		if len(all) < 20 {
			t.Errorf("bot/%s has %d dependencies, too few to be all", name, len(all))
		}
		for _, path := range all {
			if forbidden.MatchString(path) {
				t.Errorf("bot/%s links %s", name, path)
			}
		}
	}
}
