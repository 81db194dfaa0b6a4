package command

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// A Request is what a comment or a button asks for, as it is stored: a command, or a
// mistake that means one. It is read once, when it comes in. As JSON it bears the
// command's name, as in {"rebench": {"rounds": 20}}.
type Request struct {
	Command Command
	Mistake *Mistake
}

// A Mistake is a line that means a command of ours and cannot be followed.
type Mistake struct {
	Command string `json:"command"` // the command that is meant, such as rebench
	Text    string `json:"text"`    // the line as it was written: escape it before it is shown
	Problem string `json:"problem"` // Markdown; what came from the comment stands in code spans, where it can ping nobody
}

const mistake = "mistake"

// Name is that of the command that is meant.
func (r Request) Name() string {
	switch {
	case r.Command != nil:
		return r.Command.Name()
	case r.Mistake != nil:
		return r.Mistake.Command
	}
	return ""
}

// String is the line that was written, or could have been. Escape it before it is
// shown.
func (r Request) String() string {
	switch {
	case r.Command != nil:
		return r.Command.String()
	case r.Mistake != nil:
		return r.Mistake.Text
	}
	return ""
}

// Read is the request in a text that holds one: those that were stored as text.
func Read(text string) Request {
	if r, ok := Parse(text); ok {
		return r
	}
	return Request{Mistake: &Mistake{Text: clip(text, shownLine), Problem: "This is no command."}}
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

// UnmarshalJSON reads what MarshalJSON wrote.
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
