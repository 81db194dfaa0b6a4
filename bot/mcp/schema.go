package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/kernelgate/kernelgate/gates/result"
)

// schemaOf is the schema of a type, as a document with an object at the top: the protocol asks for it.
func schemaOf[T any]() map[string]any {
	top := result.JSONSchema[T]()
	top["type"] = "object"
	return top
}

// closedSchema is the schema of arguments. Unknown ones are mistakes.
func closedSchema[T any]() map[string]any {
	top := schemaOf[T]()
	for _, definition := range top["$defs"].(map[string]any) {
		definition.(map[string]any)["additionalProperties"] = false
	}
	return top
}

// decode reads arguments, and refuses unknown ones.
func decode(data json.RawMessage, in any) error {
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(in); err != nil {
		return fmt.Errorf("%w (see the schema of the tool)", err)
	}
	return nil
}
