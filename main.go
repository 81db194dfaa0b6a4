// Command kernelgate is a CI gatekeeper for GPU kernels: it builds and measures
// a change, judges the evidence by a policy, and says PASS or DEFER.
package main

import (
	"os"

	"github.com/kernelgate/kernelgate/bot/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr))
}
