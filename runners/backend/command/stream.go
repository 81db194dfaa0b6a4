package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	maxObject  = 1 << 20 // bytes of one result line
	maxObjects = 10_000
)

// An object is one JSON object of a stream.
type object struct {
	line   int // line where it begins, from 1
	fields []field
	size   int
}

// A field is one key of an object. Go's decoder accepts a different case of a key and a repeated
// key; here both are mistakes.
type field struct {
	key   string
	value json.RawMessage
}

func (o object) has(key string) bool { return o.value(key) != nil }

// objects splits a stream into JSON objects, each of which begins on a new line. With noise, lines
// that do not begin with '{' are ignored.
func objects(stream []byte, noise bool) ([]object, error) {
	var found []object
	for line := 1; len(stream) > 0; {
		end := bytes.IndexByte(stream, '\n') + 1
		if end == 0 {
			end = len(stream)
		}
		text := bytes.TrimSpace(stream[:end])
		if len(text) == 0 || noise && text[0] != '{' {
			stream = stream[end:]
			line++
			continue
		}
		if text[0] != '{' {
			return nil, fmt.Errorf("line %d: %q is not a JSON object (print other text on stderr)", line, oneLine(string(text)))
		}
		if len(found) == maxObjects {
			return nil, fmt.Errorf("line %d: there are more than %d results (print all times of a shape on one line)", line, maxObjects)
		}
		o, length, err := firstObject(stream)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		o.line = line
		found = append(found, o)
		line += bytes.Count(stream[:length], []byte("\n"))
		stream = stream[length:]
		rest, _, _ := bytes.Cut(stream, []byte("\n"))
		if after := bytes.TrimSpace(rest); len(after) > 0 {
			return nil, fmt.Errorf("line %d: %q follows the JSON object (end the line there)", line, oneLine(string(after)))
		}
		stream = stream[len(rest):]
	}
	return found, nil
}

// firstObject parses the object at the start of the text, and returns its length.
func firstObject(text []byte) (object, int, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return object{}, 0, notJSON(err)
	}
	length := int(dec.InputOffset())
	o := object{size: len(raw)}
	dec = json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return object{}, 0, notJSON(err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return object{}, 0, notJSON(err)
		}
		f := field{key: key.(string)}
		if o.has(f.key) {
			return object{}, 0, fmt.Errorf("the key %q comes twice (delete one)", oneLine(f.key))
		}
		if err := dec.Decode(&f.value); err != nil {
			return object{}, 0, notJSON(err)
		}
		if o.fields = append(o.fields, f); len(o.fields) > 64 {
			return object{}, 0, errors.New("the object has more than 64 keys")
		}
	}
	return o, length, nil
}

func notJSON(err error) error {
	text := err.Error()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return errors.New("the JSON object is cut off (does the harness end before it has printed all?)")
	case strings.Contains(text, "'N'") || strings.Contains(text, "'I'") || strings.Contains(text, "'i'"):
		return fmt.Errorf("is not valid JSON: %s (JSON has no NaN and no Infinity: leave such elements out of the figures and count them in nan and inf)", text)
	}
	return fmt.Errorf("is not valid JSON: %s", text)
}
