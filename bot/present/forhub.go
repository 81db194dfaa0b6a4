package present

import "github.com/kernelgate/kernelgate/bot/github/client"

// ForHub is the check as the GitHub client sends it.
func (c Check) ForHub() client.Check {
	out := client.Check{
		Name: c.Name, HeadSHA: c.HeadSHA, ExternalID: c.ExternalID, DetailsURL: c.DetailsURL, Status: c.Status, Conclusion: c.Conclusion,
		StartedAt: c.StartedAt, CompletedAt: c.CompletedAt, Title: c.Title, Summary: c.Summary, Text: c.Text,
	}
	for _, a := range c.Annotations {
		out.Annotations = append(out.Annotations, client.Annotation{Path: a.Path, StartLine: a.StartLine, EndLine: a.EndLine, Level: a.Level, Title: a.Title, Message: a.Message})
	}
	for _, a := range c.Actions {
		out.Actions = append(out.Actions, client.Action{Label: a.Label, Description: a.Description, Identifier: a.Identifier})
	}
	return out
}
