package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/policies/compare"
	"github.com/kernelgate/kernelgate/policies/distribution"
	"github.com/kernelgate/kernelgate/policies/quantity"
	"github.com/kernelgate/kernelgate/policies/strict"
)

// A SanitizeGate says on which small inputs the candidate runs under tools that watch every access.
// A kernel with a race or a read beyond an array can give the right output for years.
type SanitizeGate struct {
	Enforcement
	Deadline
	Shapes        Shapes              `yaml:"shapes" eg:"[small]" default:"(required)" doc:"Shapes of the manifest. Choose small ones: with a sanitizer a kernel takes 10 to 1000 times as long."`
	Distributions []distribution.Kind `yaml:"distributions" eg:"[normal, large]" default:"[normal]" doc:"Distributions of the inputs."`
	SecretCases   quantity.Count      `yaml:"secret_cases" eg:"2" default:"1" bounds:"0 to 20" doc:"Number of cases with shapes and seeds that are random in every run."`
	Tools         []Sanitizer         `yaml:"tools" eg:"[memcheck, racecheck]" default:"[memcheck, racecheck, initcheck, synccheck]" doc:"memcheck: bad and misaligned accesses; racecheck: races; initcheck: reads of unwritten memory; synccheck: divergent barriers."`
	MissingTool   MissingTool         `yaml:"missing_tool" eg:"inform" default:"defer" doc:"If the runner lacks a tool: defer, or inform and decide without it."`
	Existing      Existing            `yaml:"existing" eg:"defer" default:"report" doc:"Findings that the baseline also has: report them and do not decide by them, or defer."`
}

// A Sanitizer is one tool, by its name in compute-sanitizer.
type Sanitizer string

const (
	Memcheck  Sanitizer = "memcheck"
	Racecheck Sanitizer = "racecheck"
	Initcheck Sanitizer = "initcheck"
	Synccheck Sanitizer = "synccheck"
)

var sanitizers = []Sanitizer{Memcheck, Racecheck, Initcheck, Synccheck}

// Sanitizers returns every tool.
func Sanitizers() []Sanitizer { return slices.Clone(sanitizers) }

func (s *Sanitizer) UnmarshalStrict(n *strict.Node) { strict.Word(n, s, sanitizers) }
func (s *Sanitizer) JSONSchema() map[string]any     { return strict.WordSchema(sanitizers) }

// A MissingTool says what happens if a runner does not have the tool.
type MissingTool string

const (
	MissingDefers  MissingTool = "defer"
	MissingInforms MissingTool = "inform"
)

var missingTools = []MissingTool{MissingDefers, MissingInforms}

func (m *MissingTool) UnmarshalStrict(n *strict.Node) { strict.Word(n, m, missingTools) }
func (m *MissingTool) JSONSchema() map[string]any     { return strict.WordSchema(missingTools) }

const maxSanitized = 20 // secret cases: each runs under every tool

func (g *SanitizeGate) fill(n *strict.Node) {
	if !n.Has("distributions") {
		g.Distributions = []distribution.Kind{distribution.Normal}
	}
	if !n.Has("secret_cases") {
		g.SecretCases = 1
	}
	if !n.Has("tools") {
		g.Tools = slices.Clone(sanitizers)
	}
	g.MissingTool = cmp.Or(g.MissingTool, MissingDefers)
	g.Existing = cmp.Or(g.Existing, ExistingReports)
	g.Timeout = cmp.Or(g.Timeout, quantity.Duration(5*time.Minute))
}

func (g *SanitizeGate) check(n *strict.Node, _ rest) {
	// There is no default: with all shapes, no run on a large problem would finish.
	if g.Shapes.none() {
		n.Child("shapes").Errorf("is required: only you know which shapes are small (write e.g. [small], or first)")
	}
	tools, distributed := n.Child("tools"), n.Child("distributions")
	if len(g.Tools) == 0 {
		tools.Errorf("is empty (write e.g. [%s], or sanitize: none)", strict.JoinWords(sanitizers))
	}
	once(tools, g.Tools)
	if len(g.Distributions) == 0 {
		distributed.Errorf("is empty (write e.g. [normal])")
	}
	once(distributed, g.Distributions)
	strict.Each(distributed, g.Distributions, func(at *strict.Node, kind *distribution.Kind) {
		if kind.FromRecording() {
			at.Errorf("%q: a tool's report may quote what is in memory, and recorded inputs are not shown (write random kinds)", *kind)
		}
	})
	if g.SecretCases > maxSanitized {
		n.Child("secret_cases").Errorf("%s is more than %d", g.SecretCases, maxSanitized)
	}
}

// once refuses a word that occurs in a list twice.
func once[T ~string](n *strict.Node, words []T) {
	seen := map[T]bool{}
	strict.Each(n, words, func(at *strict.Node, word *T) {
		if seen[*word] {
			at.Errorf("%q is named twice (delete one)", *word)
		}
		seen[*word] = true
	})
}

func (g SanitizeGate) String() string {
	text := fmt.Sprintf("%s find nothing on %s × %s inputs", strict.JoinWords(g.Tools), g.Shapes, strict.JoinWords(g.Distributions))
	switch {
	case g.SecretCases == 1:
		text += ", and a secret case"
	case g.SecretCases > 1:
		text += fmt.Sprintf(", and %v secret cases", g.SecretCases)
	}
	if g.MissingTool == MissingInforms {
		text += "; a tool that the runner lacks is reported and left out"
	}
	if g.Existing == ExistingDefers {
		text += "; findings that the baseline has, too, also defer"
	}
	return text
}

func (g *SanitizeGate) compare(l *compare.List, path string, old *SanitizeGate) {
	compareEnforcement(l, path, old.Enforcement, g.Enforcement)
	compareDeadline(l, path, old.Deadline, g.Deadline)
	compareShapes(l, path+".shapes", old.Shapes, g.Shapes, compare.Tightens)
	compare.Set(l, path+".distributions", old.Distributions, g.Distributions)
	compare.More(l, path+".secret_cases", old.SecretCases, g.SecretCases)
	compare.Set(l, path+".tools", old.Tools, g.Tools)
	compareWord(l, path+".missing_tool", []MissingTool{MissingInforms, MissingDefers}, old.MissingTool, g.MissingTool)
	compareWord(l, path+".existing", existings, old.Existing, g.Existing)
}

func (g *SanitizeGate) narrow([]string, []int64) *SanitizeGate { return g }

func (g *SanitizeGate) inputs() []Inputs {
	return []Inputs{{"sanitize.shapes", g.Shapes, g.SecretCases > 0}}
}
