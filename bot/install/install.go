// Package install holds the files that an operator starts from, for the programs
// that fill them in. It installs nothing itself.
package install

import _ "embed" // for the manifest

//go:embed app-manifest.json
var manifest string

// Manifest is the GitHub App that the bot needs, with addresses to be replaced.
func Manifest() []byte { return []byte(manifest) }
