package doctor

import (
	"fmt"

	"github.com/kernelgate/kernelgate/runners/toolchain"
)

// compilerFindings is every compiler that a policy can pin here, as it would write it.
func compilerFindings(all []toolchain.Compiler, broken error) []Finding {
	var findings []Finding
	for _, c := range all {
		f := Finding{Name: "toolchain " + c.Kind + " " + c.Version, Status: OK, Detail: fmt.Sprintf("%s, digest %s", c.Place, c.Digest)}
		if c.Err != nil {
			f.Status, f.Detail, f.Remedy = Missing, oneLine(c.Err), "let this user read all of "+c.Place
		}
		findings = append(findings, f)
	}
	if broken != nil {
		findings = append(findings, Finding{
			Name: "toolchains", Status: Missing, Detail: oneLine(broken), Remedy: "name folders of CUDA toolkits, or those that hold the package triton: --toolchain FOLDER, runner.toolchains in the bot's configuration",
		})
	}
	return findings
}
