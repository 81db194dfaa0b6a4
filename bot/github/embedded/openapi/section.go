package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
)

// A section is an object of the description that decodes its members on demand. A test needs a few
// dozen kB of the 13 MB, and decoding everything takes seconds under the race detector.
type section struct {
	raw map[string]json.RawMessage

	mu      sync.Mutex
	decoded map[string]any
}

func newSection(raw []byte) (*section, error) {
	m, err := members(raw)
	return &section{raw: m, decoded: map[string]any{}}, err
}

// at returns a member, or nil. It panics if a member cannot be decoded, because the caller cannot
// go on without the description.
func (s *section) at(name string) any {
	if s == nil || s.raw[name] == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.decoded[name]; ok {
		return v
	}
	var v any
	if err := json.Unmarshal(s.raw[name], &v); err != nil {
		panic(fmt.Sprintf("GitHub's API description, %s: %v (delete it and fetch it again)", name, err))
	}
	s.decoded[name] = v
	return v
}

// members splits a JSON object into its members without parsing their values. It returns an error
// if raw is not an object.
func members(raw []byte) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	i := space(raw, 0)
	if i == len(raw) || raw[i] != '{' {
		return nil, fmt.Errorf("byte %d: no object begins here", i)
	}
	for i = space(raw, i+1); i < len(raw) && raw[i] != '}'; i = space(raw, i) {
		if len(all) > 0 {
			if raw[i] != ',' {
				return nil, fmt.Errorf("byte %d: no comma between two members", i)
			}
			i = space(raw, i+1)
		}
		end := valueEnd(raw, i)
		var key string
		if err := json.Unmarshal(raw[i:end], &key); err != nil {
			return nil, fmt.Errorf("byte %d: no key: %w", i, err)
		}
		i = space(raw, end)
		if i == len(raw) || raw[i] != ':' {
			return nil, fmt.Errorf("byte %d: no colon after %q", i, key)
		}
		i = space(raw, i+1)
		end = valueEnd(raw, i)
		if i == end {
			return nil, fmt.Errorf("byte %d: no value of %q", i, key)
		}
		all[key] = raw[i:end]
		i = end
	}
	if i == len(raw) {
		return nil, fmt.Errorf("byte %d: the object does not end", i)
	}
	return all, nil
}

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// valueEnd returns the index after the value that begins at i.
func valueEnd(raw []byte, i int) int {
	depth := 0
	for ; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			if i = stringEnd(raw, i); depth == 0 {
				return i
			}
			i--
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // this closes the surrounding value
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		quote := bytes.IndexByte(raw[i:], '"')
		if quote < 0 {
			break
		}
		text := raw[i : i+quote]
		if escapes := len(text) - len(bytes.TrimRight(text, `\`)); escapes%2 == 0 {
			return i + quote + 1
		}
		i += quote
	}
	return len(raw)
}
