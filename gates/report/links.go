package report

import (
	"cmp"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
)

// Links is where a reader finds more. A thing without an address is named without a link, or left
// out where its name is no use.
type Links struct {
	Report, History, MachineCode string // addresses
	Rule                         string // of the policy's file
	Baseline, Candidate          Link   // the commits
}

// A Link is a text with an address, which may be empty.
type Link struct{ Text, URL string }

// whereFrom is the device, the pages, the commits and the rule in one line.
func whereFrom(v *gates.Verdict, to Links) []block {
	var parts []line
	if name := Plain(v.Device.Name); name != "" {
		if v.Device.Arch != "" {
			name += " (" + Plain(v.Device.Arch) + ")"
		}
		parts = append(parts, cell(name))
	}
	for _, page := range []Link{{"full report", to.Report}, {"history", to.History}, {"machine-code diff", to.MachineCode}} {
		if page.URL != "" && (page.URL != to.MachineCode || v.MachineCode != nil && len(v.MachineCode.Changes) > 0) {
			parts = append(parts, line{inline{style: plain, text: page.Text, url: page.URL}})
		}
	}
	if to.Baseline.Text == "" && to.Candidate.Text == "" {
		to.Baseline.Text, to.Candidate.Text = Short(cmp.Or(v.Provenance.Baseline, v.Provenance.Base.SHA)), Short(v.Provenance.Head.SHA)
	}
	if before, after := to.Baseline, to.Candidate; before.Text != "" && after.Text != "" && before.Text != after.Text {
		parts = append(parts, line{codeLink(before), text(" → "), codeLink(after)})
	} else if after.Text != "" {
		parts = append(parts, line{codeLink(after)})
	}
	if rule := Plain(v.Rule); rule != "" {
		l := line{text("rule "), codeLink(Link{rule, to.Rule})}
		if v.Policy != "" && to.Rule == "" {
			l = append(l, text(" of "), mono(v.Policy))
		}
		parts = append(parts, l)
	}
	var l line
	for i, p := range parts {
		if i > 0 {
			l = append(l, text(" · "))
		}
		l = append(l, p...)
	}
	if l == nil {
		return nil
	}
	return []block{paragraph{l}}
}

func codeLink(l Link) inline { return inline{style: code, text: Plain(l.Text), url: l.URL} }

// Markdown is the link as code. Its text may be anybody's, its address is ours.
func (l Link) Markdown() string { return markdownLine(line{codeLink(l)}) }

// linked sets an address to words that are Markdown already. A bracket would end the words, unless it is in code;
// parentheses and spaces would end the address.
func linked(words, url string) string {
	if url == "" {
		return words
	}
	if !strings.HasPrefix(words, "`") {
		words = strings.ReplaceAll(words, "]", "\\]")
	}
	return "[" + words + "](" + strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "<", "%3C", ">", "%3E", "\n", "").Replace(url) + ")"
}
