// Package install holds the files that an operator starts from, for the programs
// that fill them in. It installs nothing itself.
package install

import _ "embed" // for the files

//go:embed app-manifest.json
var manifest string

//go:embed kernelgate.example.yaml
var example string

// Manifest is the GitHub App that the bot needs, with addresses to be replaced.
func Manifest() []byte { return []byte(manifest) }

// Example is a configuration of the bot, with every key that most need.
func Example() []byte { return []byte(example) }
