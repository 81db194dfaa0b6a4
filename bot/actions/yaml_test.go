package actions_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

type step struct {
	ID    string            `yaml:"id"`
	If    string            `yaml:"if"`
	Uses  string            `yaml:"uses"`
	Run   string            `yaml:"run"`
	Shell string            `yaml:"shell"`
	Env   map[string]string `yaml:"env"`
	With  map[string]any    `yaml:"with"`
	Name  string            `yaml:"name"`
}

func parse(t *testing.T, file string, into any) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return string(text)
}

type actionFile struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Branding    struct {
		Icon  string `yaml:"icon"`
		Color string `yaml:"color"`
	} `yaml:"branding"`
	Inputs map[string]struct {
		Description string `yaml:"description"`
		Default     string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string `yaml:"using"`
		Steps []step `yaml:"steps"`
	} `yaml:"runs"`
}

func parseAction(t *testing.T) (action actionFile) {
	t.Helper()
	parse(t, actionPath, &action)
	return action
}

// TestAction checks that every input is used, that everything that is used exists, and that no
// input is pasted into a script, where its text would be code.
func TestAction(t *testing.T) {
	action, text := parseAction(t), read(actionPath)
	used := map[string]bool{}
	for _, m := range regexp.MustCompile(`inputs\.([a-z0-9-]+)`).FindAllStringSubmatch(text, -1) {
		if used[m[1]] = true; action.Inputs[m[1]].Description == "" {
			t.Errorf("inputs.%s is used and not described", m[1])
		}
	}
	for name := range action.Inputs {
		if !used[name] {
			t.Errorf("the input %s is not used", name)
		}
	}
	var ids []string
	for _, s := range action.Runs.Steps {
		ids = append(ids, s.ID)
		if strings.Contains(s.Run, "${{") {
			t.Errorf("an expression in a script: %s", s.Run)
		}
		if s.Run != "" && s.Shell == "" {
			t.Errorf("a composite action's script needs a shell: %s", s.Run)
		}
	}
	for _, m := range regexp.MustCompile(`steps\.([a-z]+)\.outputs\.([a-z]+)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(ids, m[1]) {
			t.Errorf("steps.%s is used and not there", m[1])
		}
	}
	for _, name := range []string{"verdict", "reason", "results"} {
		if want := "${{ steps.check.outputs." + name + " }}"; action.Outputs[name].Value != want {
			t.Errorf("the output %s is %q, want %q", name, action.Outputs[name].Value, want)
		}
	}
}
