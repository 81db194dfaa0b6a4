package openapi

import "testing"

// TestExamplesOfGitHub counts the valid examples, which shows how far the schemas can be trusted.
func TestExamplesOfGitHub(t *testing.T) {
	s := LoadSchemas(t)
	all, valid, err := s.Examples()
	t.Logf("%d of GitHub's %d examples are valid", valid, all)
	if err != nil {
		t.Fatal(err)
	}
	if all != 329 || valid != 276 {
		t.Errorf("%d of %d examples are valid: look at what the new schemas say", valid, all)
	}
}
