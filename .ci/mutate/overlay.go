package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// The switch reads these: the number of the mutant to turn on, and a file that lists the mutants that were reached.
const (
	onVariable    = "KERNELGATE_MUTANT"
	traceVariable = "KERNELGATE_MUTANT_TRACE"
)

// switchSource is the file that is added to each package.
func switchSource(name string) string {
	return fmt.Sprintf(`package %s

import (
	"os"
	"strconv"
	"sync"
)

var (
	mutantOn, _    = strconv.Atoi(os.Getenv(%q))
	mutantTrace    = os.Getenv(%q)
	mutantsReached sync.Map
)

func mutantIsOn(id int) bool {
	if mutantTrace != "" {
		if _, known := mutantsReached.LoadOrStore(id, true); !known {
			if f, err := os.OpenFile(mutantTrace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				f.WriteString(strconv.Itoa(id) + "\n")
				f.Close()
			}
		}
	}
	return id == mutantOn
}
`, name, onVariable, traceVariable)
}

// An edit inserts text. Mutants only insert, so any number of them fit into one file.
type edit struct {
	at, other int // where it inserts, and the other end of the node
	id        int
	text      string
	closes    bool
}

// apply inserts the edits so that nodes stay nested: at one place, inner nodes close first and outer nodes open first.
func apply(text []byte, edits []edit) []byte {
	edits = slices.Clone(edits)
	slices.SortFunc(edits, func(a, b edit) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.closes != b.closes:
			if a.closes {
				return -1
			}
			return 1
		case a.closes:
			return cmp.Or(cmp.Compare(b.other, a.other), cmp.Compare(b.id, a.id))
		}
		return cmp.Or(cmp.Compare(b.other, a.other), cmp.Compare(a.id, b.id))
	})
	var out bytes.Buffer
	last := 0
	for _, e := range edits {
		out.Write(text[last:e.at])
		out.WriteString(e.text)
		last = e.at
	}
	out.Write(text[last:])
	return out.Bytes()
}

// writeOverlay writes the altered files and returns the path of the overlay.
func (m *module) writeOverlay(dir string, sampled []*mutant) (string, error) {
	replace := map[string]string{}
	write := func(path string, text []byte) error {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[path] = to
		return os.WriteFile(to, text, 0o600)
	}
	for _, s := range m.packages {
		if err := write(filepath.Join(s.dir, "mutate_switch.go"), []byte(switchSource(s.types.Name()))); err != nil {
			return "", err
		}
		edits := make([][]edit, len(s.files))
		for _, mutant := range sampled {
			if mutant.Package == s.pkg {
				edits[mutant.file] = append(edits[mutant.file], mutant.edits...)
			}
		}
		for i, e := range edits {
			if len(e) == 0 {
				continue
			}
			if err := write(s.names[i], apply(s.texts[i], e)); err != nil {
				return "", err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o600)
}
