package distribution

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// Recorded is every recording that the kernel has for a shape. A manifest names recordings: real inputs from a file.
const Recorded Kind = "recorded"

const recordedPrefix = string(Recorded) + ":"

// recordingName is what stands in flags, file names and tables.
var recordingName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// IsRecordingName reports whether a recording may have the name.
func IsRecordingName(name string) bool { return recordingName.MatchString(name) }

// RecordedAs returns the kind of a recording: recorded:NAME.
func RecordedAs(name string) Kind { return Kind(recordedPrefix + name) }

// Recording returns the name in recorded:NAME. A kind that names no recording has none.
func (d Kind) Recording() (name string, ok bool) {
	name, ok = strings.CutPrefix(string(d), recordedPrefix)
	return name, ok && IsRecordingName(name)
}

// FromRecording reports whether values of the kind come from a file.
func (d Kind) FromRecording() bool {
	return d == Recorded || strings.HasPrefix(string(d), recordedPrefix)
}

func (d *Kind) UnmarshalStrict(n *strict.Node) {
	text, ok := n.Text()
	if !ok || !Kind(text).FromRecording() {
		strict.Word(n, d, append(All(), Recorded))
		return
	}
	*d = Kind(text)
	if _, named := d.Recording(); !named && *d != Recorded {
		n.Errorf("%q names no recording (write recorded, or recorded: and a name of the manifest, e.g. recorded:decode)", text)
	}
}

func (d *Kind) JSONSchema() map[string]any {
	return map[string]any{
		"title": "one of " + strict.JoinWords(All()) + ", recorded, recorded:NAME",
		"anyOf": []any{
			strict.WordSchema(append(All(), Recorded)),
			map[string]any{"type": "string", "pattern": "^" + recordedPrefix + strings.Trim(recordingName.String(), "^")},
		},
	}
}

// A Recording is what policies and gates know about a kernel's recording.
type Recording struct {
	Name  string `json:"name"`
	Shape string `json:"shape"`
	// Timed means that launches are timed on it, each with different noise on the values.
	Timed  bool   `json:"timed,omitempty"`
	SHA256 string `json:"sha256"` // of the file
}

// Kind is recorded:NAME.
func (r Recording) Kind() Kind { return RecordedAs(r.Name) }

// On returns the kinds of input that launches on a shape get: the random ones of a list, and the recordings of the shape
// that the list names.
func On(list []Kind, recordings []Recording, shape string) []Kind {
	var all []Kind
	for _, kind := range list {
		if !kind.FromRecording() {
			all = append(all, kind)
			continue
		}
		for _, r := range recordings {
			if r.Shape == shape && (kind == Recorded || kind == r.Kind()) && !slices.Contains(all, r.Kind()) {
				all = append(all, r.Kind())
			}
		}
	}
	return all
}

// TimedOn returns the kinds among On that launches are timed on.
func TimedOn(list []Kind, recordings []Recording, shape string) []Kind {
	return slices.DeleteFunc(On(list, recordings, shape), func(kind Kind) bool {
		return slices.ContainsFunc(recordings, func(r Recording) bool { return r.Kind() == kind && !r.Timed })
	})
}

// Random returns the kinds of a list that need no file.
func Random(list []Kind) []Kind {
	return slices.DeleteFunc(slices.Clone(list), Kind.FromRecording)
}
