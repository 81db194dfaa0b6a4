package strict_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kernelgate/kernelgate/policies/strict"
)

// A shed has one field of every kind, and examples of every kind.
type shed struct {
	Name  string         `yaml:"name" required:"true" eg:"old: shed" doc:"What it is called."`
	Doors int            `yaml:"doors" eg:"2"`
	Dry   bool           `yaml:"dry" eg:"true"`
	Area  float64        `yaml:"area" eg:"2.5"`
	Racks []rack         `yaml:"racks" eg:"[{rows: 4}]"`
	Keys  map[string]int `yaml:"keys" eg:"{front: 1}"`
	Paint colour         `yaml:"paint" eg:"red"`
	Lock  *rack          `yaml:"lock" doc:"May be none."`
	Trim  *colour        `yaml:"trim"`
	Limit *int           `yaml:"limit" eg:"<= 2"`
	Sign  *string        `yaml:"sign"`
}

type rack struct {
	Rows int `yaml:"rows"`
}

func TestSchema(t *testing.T) {
	got, err := strict.Schema("https://example.com/shed.json", "a shed", shed{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "$id": "https://example.com/shed.json",
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "additionalProperties": false,
  "properties": {
    "area": {
      "examples": [
        2.5
      ],
      "type": "number"
    },
    "doors": {
      "examples": [
        2
      ],
      "type": "integer"
    },
    "dry": {
      "examples": [
        true
      ],
      "type": "boolean"
    },
    "keys": {
      "additionalProperties": {
        "type": "integer"
      },
      "examples": [
        {
          "front": 1
        }
      ],
      "type": "object"
    },
    "limit": {
      "anyOf": [
        {
          "type": "integer"
        },
        {
          "enum": [
            "none",
            null
          ]
        }
      ],
      "examples": [
        "<= 2"
      ]
    },
    "lock": {
      "anyOf": [
        {
          "additionalProperties": false,
          "properties": {
            "rows": {
              "type": "integer"
            }
          },
          "type": "object"
        },
        {
          "enum": [
            "none",
            null
          ]
        }
      ],
      "description": "May be none."
    },
    "name": {
      "description": "What it is called.",
      "examples": [
        "old: shed"
      ],
      "type": "string"
    },
    "paint": {
      "enum": [
        "red",
        "green"
      ],
      "examples": [
        "red"
      ]
    },
    "racks": {
      "examples": [
        [
          {
            "rows": 4
          }
        ]
      ],
      "items": {
        "additionalProperties": false,
        "properties": {
          "rows": {
            "type": "integer"
          }
        },
        "type": "object"
      },
      "type": "array"
    },
    "sign": {
      "anyOf": [
        {
          "type": "string"
        },
        {
          "enum": [
            null
          ]
        }
      ]
    },
    "trim": {
      "anyOf": [
        {
          "enum": [
            "red",
            "green"
          ]
        },
        {
          "enum": [
            null
          ]
        }
      ]
    }
  },
  "required": [
    "name"
  ],
  "title": "a shed",
  "type": "object"
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestSchemaRefusesWhatDecodeCannotFill(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic: the mistake is the programmer's")
		}
	}()
	_, _ = strict.Schema("", "", struct {
		A any `yaml:"a"`
	}{})
}
