package manifest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/ident"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A Rival is a different implementation, timed together with the kernel for information.
type Rival struct {
	Name        string   `yaml:"name" required:"true" eg:"torch" doc:"Name of the rival in reports."`
	Command     []string `yaml:"command" required:"true" eg:"[python3, rival.py]" doc:"Program and arguments. No shell is involved."`
	Description string   `yaml:"description" eg:"PyTorch SDPA" doc:"One line of description."`
}

func (r *Rival) ValidateStrict(n *strict.Node) {
	if n.Has("name") && !ident.IsName(r.Name) {
		n.Child("name").Errorf("%q is not a name (write letters, digits, '.', '_' and '-')", r.Name)
	}
	checkArgv(n, "command", r.Command)
}

// A Command says how the repository's own harness is built and run.
type Command struct {
	Build []string `yaml:"build" required:"true" eg:"[make, bench]" doc:"Command that builds the harness: program and arguments, without a shell."`
	Test  []string `yaml:"test" eg:"[ctest, --output-on-failure]" default:"(none: bench prints error figures)" doc:"Command that tests the built harness: program and arguments, without a shell. Its exit status decides the correctness gate, and bench prints only times."`
	Bench []string `yaml:"bench" required:"true" eg:"[./bench, --json]" doc:"Command that measures: program and arguments, without a shell."`
	Unit  Unit     `yaml:"unit" eg:"ms" default:"us" doc:"Unit of the times that bench prints."`
}

// A Unit is a harness's unit of time.
type Unit string

var units = []Unit{"ns", "us", "ms", "s"}

func (u *Unit) UnmarshalStrict(n *strict.Node) { strict.Word(n, u, units) }
func (u *Unit) JSONSchema() map[string]any     { return strict.WordSchema(units) }

// Micros returns the microseconds of one unit.
func (u Unit) Micros() float64 {
	return map[Unit]float64{"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}[u]
}

func (c *Command) ValidateStrict(n *strict.Node) {
	c.Unit = cmp.Or(c.Unit, "us")
	checkArgv(n, "build", c.Build)
	if n.Has("test") {
		checkArgv(n, "test", c.Test)
	}
	checkArgv(n, "bench", c.Bench)
}

func checkArgv(n *strict.Node, field string, argv []string) {
	at := n.Child(field)
	switch {
	case !at.List():
	case len(argv) == 0:
		at.Errorf("is empty (write the program and its arguments)")
	case argv[0] == "":
		at.Errorf("names no program (write it first)")
	case slices.ContainsFunc(argv, func(arg string) bool { return strings.ContainsRune(arg, 0) }):
		at.Errorf("has a zero byte (delete it)")
	}
}
