package present

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/gates/report"
)

// Marker is the hidden first line of a change's sticky comment. Anybody can
// write it: it tells which of the bot's own comments is the one.
func Marker(id change.ID) string { return "<!-- kernelgate:" + id.String() + " -->" }

var markable = regexp.MustCompile(`^[A-Za-z0-9]+(-[A-Za-z0-9]+)*$`)

// ReplyMarker is the hidden first line of the reply to a command, so that a
// reply that was written before a crash is found again.
func ReplyMarker(commandID string) string {
	if !markable.MatchString(commandID) {
		sum := sha256.Sum256([]byte(commandID))
		commandID = hex.EncodeToString(sum[:16])
	}
	return "<!-- kernelgate:reply:" + commandID + " -->"
}

// Reply is the comment that answers a command; there is none before there is an
// answer. It leads to the page of a search that the command has started.
func (v View) Reply(c change.Command) string {
	if !c.Answered {
		return ""
	}
	text := strings.TrimSpace(AnswerText(c))
	if i := slices.IndexFunc(v.State.Searches, func(r change.Run) bool { return r.Command == c.ID }); i >= 0 {
		if page := v.Pages[v.State.Searches[i].Job].URL; page != "" {
			text += "\n\n[Follow the search](" + page + ")"
		}
	}
	top := ReplyMarker(c.ID) + "\n> " + report.EscapeCode(report.Clip(report.Plain(c.Request.String()), 300)) + " — " + report.Escape("@"+c.By) + "\n\n"
	return top + cut(mute(text), maxComment-len(top)-100) + "\n"
}

// mute sees to it that no line is read as a command: with a personal token the
// bot's own comments are those of somebody who may give them. Code is never read,
// and stays as it is.
func mute(text string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(strings.TrimLeft(line, " \t"), "/") {
			b.WriteString("&#8203;")
		}
		b.WriteString(line)
	}
	return b.String()
}

// cut ends a text of ours that is too long after a whole line.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[:limit]
	text = text[:strings.LastIndexByte(text, '\n')+1]
	if strings.Count("\n"+text, "\n```")%2 == 1 {
		text += "```\n"
	}
	return text + "\nShortened: the rest is too long for a comment."
}
