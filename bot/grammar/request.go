package grammar

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// A Request is the stored form of what a comment or a button asks for: a command, or a mistake in
// one. It is parsed once, on arrival. Its JSON has the command's name as key, as in {"rebench":
// {"rounds": 20}}.
type Request struct {
	Command Command
	Mistake *Mistake
}

// A Mistake is a line that was meant as a command of ours but cannot be executed.
type Mistake struct {
	Command string `json:"command"` // the intended command, such as rebench
	Text    string `json:"text"`    // the original line: escape it before you show it
	Problem string `json:"problem"` // Markdown; parts of the comment are in code spans, where they ping nobody
}

const mistake = "mistake"

// Name returns the name of the intended command.
func (r Request) Name() string {
	switch {
	case r.Command != nil:
		return r.Command.Name()
	case r.Mistake != nil:
		return r.Mistake.Command
	}
	return ""
}

// String returns the line that was written, or an equivalent one. Escape it before you show it.
func (r Request) String() string {
	switch {
	case r.Command != nil:
		return r.Command.String()
	case r.Mistake != nil:
		return r.Mistake.Text
	}
	return ""
}

// Read parses a request that was stored as text.
func Read(text string) Request {
	if r, ok := Parse(text); ok {
		return r
	}
	return Request{Mistake: &Mistake{Text: clip(text, shownLine), Problem: "This is not a command."}}
}

// MarshalJSON stores the command under its name.
func (r Request) MarshalJSON() ([]byte, error) {
	switch {
	case r.Command != nil:
		return json.Marshal(map[string]any{r.Command.Name(): r.Command})
	case r.Mistake != nil:
		return json.Marshal(map[string]any{mistake: r.Mistake})
	}
	return []byte("null"), nil
}

// UnmarshalJSON parses what MarshalJSON wrote.
func (r *Request) UnmarshalJSON(data []byte) error {
	*r = Request{}
	var stored map[string]json.RawMessage
	if err := json.Unmarshal(data, &stored); err != nil {
		return fmt.Errorf("reading a stored command: %w", err)
	}
	if len(stored) > 1 {
		return fmt.Errorf("reading a stored command: %d in one place", len(stored))
	}
	for name, value := range stored {
		if name == mistake {
			r.Mistake = &Mistake{}
			return json.Unmarshal(value, r.Mistake)
		}
		g, ok := entryOf(name)
		if !ok {
			return fmt.Errorf("the unknown command %q is stored (it was written by a newer kernelgate: install that one)", name)
		}
		into := reflect.New(reflect.TypeOf(g.of))
		if err := json.Unmarshal(value, into.Interface()); err != nil {
			return fmt.Errorf("reading a stored %s: %w", name, err)
		}
		r.Command = into.Elem().Interface().(Command)
	}
	return nil
}
