package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
)

// Sources is where a configuration comes from. What a flag says goes before the
// environment, that before the file, and that before the defaults.
type Sources struct {
	File   string // "" is none
	Getenv func(string) string
	Flags  map[string]string // values by Key.Flag

	// JournalOnly asks for no account: a command that only uses the journal does not have the environment of the bot, which may
	// have the secrets.
	JournalOnly bool
}

// A Key is one field that can be set in the environment and on the command line.
type Key struct {
	Path, Env, Flag string
	Doc             string
	Bool            bool

	index []int
}

// Keys lists them all.
func Keys() []Key { return keysOf(reflect.TypeFor[Config](), "", nil) }

func keysOf(t reflect.Type, path string, index []int) []Key {
	var keys []Key
	for _, f := range strict.Fields(t) {
		if f.Type == reflect.TypeFor[inlineSecret]() {
			continue
		}
		sf := fieldNamed(t, f.Name)
		at := slices.Concat(index, sf.Index)
		name := path + f.Name
		if f.Type.Kind() == reflect.Struct {
			keys = append(keys, keysOf(f.Type, name+".", at)...)
			continue
		}
		keys = append(keys, Key{
			Path: name, Env: envName(name), Flag: flagName(name), Doc: f.Description(), Bool: f.Type.Kind() == reflect.Bool, index: at,
		})
	}
	return keys
}

func fieldNamed(t reflect.Type, name string) reflect.StructField {
	for _, sf := range reflect.VisibleFields(t) {
		if sf.Tag.Get("yaml") == name {
			return sf
		}
	}
	panic("serve: " + t.String() + " has no field " + name)
}

// Load reads a configuration and checks it. The error is a usage.Error that has
// a line for every mistake, each with its place.
func Load(from Sources) (Config, error) {
	text, name := []byte("{}"), ""
	if from.File != "" {
		var err error
		if text, err = os.ReadFile(from.File); err != nil {
			return Config{}, usage.Errorf("reading the configuration: %w (name a different file with --config)", err)
		}
		name = from.File
		if strings.TrimSpace(string(text)) == "" {
			text = []byte("{}")
		}
	}
	return parse(name, text, from)
}

func parse(name string, text []byte, from Sources) (Config, error) {
	r := &reading{Config: Defaults(from.Getenv), from: from, origin: map[string]string{}}
	var found strict.Problems
	if err := strict.Decode(name, text, r); err != nil && !errors.As(err, &found) {
		return Config{}, err
	}
	var lines problems
	for _, p := range found {
		if name == "" { // there is no file to point into
			p.Line = 0
			lines.add("%s", strings.TrimPrefix(p.String(), ": "))
			continue
		}
		lines.add("%s", p)
	}
	lines = append(lines, r.problems...)
	if err := lines.err(); err != nil {
		return Config{}, err
	}
	abs, err := filepath.Abs(r.Data)
	if err != nil {
		return Config{}, fmt.Errorf("the data folder: %w", err)
	}
	r.Data = abs
	return r.Config, nil
}

// A reading is a configuration on its way: the file's values first, then what lies
// over them, then the checks, so that each mistake is told where it was made.
type reading struct {
	Config
	from     Sources
	origin   map[string]string // of values that are not the file's
	problems problems
}

// problems are an operator's mistakes, told all at once.
type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return usage.Error{Err: errors.New(strings.Join(p, "\n"))}
}

// ValidateStrict runs when the file has been read.
func (r *reading) ValidateStrict(n *strict.Node) {
	for _, k := range Keys() {
		if text := r.from.Getenv(k.Env); text != "" {
			r.override(k, k.Env, text)
		}
		if text, ok := r.from.Flags[k.Flag]; ok {
			r.override(k, "--"+k.Flag, text)
		}
	}
	r.overrideTelemetry()
	if n.Mapping() {
		(&checker{reading: r, node: n}).check()
	}
}

// override reads a value as the file would, on top of what is there.
func (r *reading) override(k Key, origin, text string) {
	into := reflect.ValueOf(&r.Config).Elem().FieldByIndex(k.index)
	r.origin[k.Path] = origin
	switch into.Interface().(type) {
	case string:
		into.SetString(text)
		return
	case []string, Words:
		if !strings.HasPrefix(text, "[") {
			into.Set(reflect.ValueOf(words(text)).Convert(into.Type()))
			return
		}
	}
	// Read as YAML, so that a list of runners can be written too.
	box := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Value", Type: into.Type(), Tag: `yaml:"value"`}}))
	var found strict.Problems
	if err := strict.Decode(origin, []byte("value: "+text), box.Interface()); errors.As(err, &found) {
		for _, p := range found {
			r.problems.add("%s: %s", origin+strings.TrimPrefix(p.Path, "value"), p.Message)
		}
		return
	}
	into.Set(box.Elem().Field(0))
}

// words splits a list that is written with commas.
func words(text string) []string {
	var list []string
	for _, w := range strings.Split(text, ",") {
		if w = strings.TrimSpace(w); w != "" {
			list = append(list, w)
		}
	}
	return list
}

// Unknown names the variables of an environment that look like kernelgate's and
// mean nothing: as a rule, slips of the pen.
func Unknown(environ []string) []string {
	known := map[string]bool{envPrivateKey: true, envToken: true, envWebhookSecret: true, EnvConfig: true}
	for _, k := range Keys() {
		known[k.Env] = true
	}
	var unknown []string
	for _, pair := range environ {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, envPrefix) && !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// EnvConfig names the configuration file where no flag does.
const EnvConfig = envPrefix + "CONFIG"

// DefaultFile is read if it is there and no other is named.
const DefaultFile = "/etc/kernelgate/kernelgate.yaml"
