package strict

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// parse returns the root of the only document in the text, or nil if there is nothing to decode.
func (d *decoder) parse(data []byte) *yaml.Node {
	file := &Node{yaml: &yaml.Node{}, dec: d}
	if len(data) > MaxBytes {
		file.Errorf("is %d bytes long (at most %d are read)", len(data), MaxBytes)
		return nil
	}
	// The YAML library also reads UTF-16, in which nobody who searches the text for a word finds it.
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		file.yaml.Line = 1
		file.Errorf("is not UTF-8 text (save the file as UTF-8)")
		return nil
	}
	documents, err := documentsOf(data)
	if err != nil {
		file.yaml.Line = mistakenLine(data)
		message := syntaxMessage(err, file.yaml.Line > 0)
		if file.yaml.Line > 0 {
			line := strings.Split(string(data), "\n")[file.yaml.Line-1]
			why := causeOf(message, strings.TrimSuffix(line, "\r"))
			file.yaml.Column = why.column
			message += fmt.Sprintf(" (%s)", why.remedy)
		}
		file.Errorf("is not valid YAML: %s", message)
		return nil
	}
	if len(documents) > 1 {
		second := &Node{yaml: documents[1], dec: d}
		second.Errorf("a second YAML document starts here (write one document a file)")
		return nil
	}
	if len(documents) == 0 || len(documents[0].Content) == 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	}
	return documents[0].Content[0]
}

// documentsOf returns the first two documents of a file, or its first syntax error.
func documentsOf(data []byte) ([]*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var documents []*yaml.Node
	for len(documents) < 2 {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		documents = append(documents, &doc)
	}
	return documents, nil
}

// mistakenLine returns the line at which the file becomes invalid. The YAML parser names where the
// innermost block starts, one line off or not at all. So the file is parsed again without its last
// line until that succeeds. The result is 0 for a file that is too long to parse that often.
func mistakenLine(data []byte) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	if len(data)*len(lines) > 1<<23 {
		return 0
	}
	end := len(data)
	for i := len(lines); i > 0; i-- {
		end -= len(lines[i-1])
		if _, err := documentsOf(data[:end]); err == nil {
			return i
		}
	}
	return 1
}

var yamlPlace = regexp.MustCompile(`^yaml: (line \d+: )?`)

func syntaxMessage(err error, placed bool) string {
	m := yamlPlace.FindStringSubmatch(err.Error())
	if m == nil {
		return err.Error()
	}
	text := err.Error()[len(m[0]):]
	if !placed {
		text = m[1] + text
	}
	return text
}

// survey reports constructs that are never read. It covers parts of the file whose types read
// themselves, and it reports each construct once where it stands, not at each alias.
func (d *decoder) survey(y *yaml.Node, n *Node, depth int) {
	if !d.shallow(n, depth) {
		return
	}
	if y.Style&yaml.TaggedStyle != 0 {
		n.Errorf("has the tag %s, and tags are not read (delete it)", y.Tag)
	}
	switch y.Kind {
	case yaml.SequenceNode:
		for i, item := range y.Content {
			d.survey(item, d.at(item, n, "", i), depth+1)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(y.Content); i += 2 {
			key, value := y.Content[i], y.Content[i+1]
			at := &Node{yaml: key, parent: n, key: key.Value, dec: d}
			switch {
			case key.Tag == "!!merge":
				at.Errorf("merge keys are not read (repeat the fields here)")
			case !isWord(key):
				// The key's own path would say nothing.
				at.parent, at.key, at.index = n.parent, n.key, n.index
				at.Errorf("has a key that is no word (write name: value)")
			default:
				d.survey(key, at, depth+1)
				d.survey(value, d.at(value, n, key.Value, 0), depth+1)
			}
		}
	}
}

// isWord reports whether a key is a name that a struct or a map can have.
func isWord(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value != "" && key.Tag != "!!null" && key.Tag != "!!merge"
}
