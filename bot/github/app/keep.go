package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// keep writes the App's files and prints the next steps.
func (j *job) keep(made app) error {
	if err := j.write(made); err != nil {
		return j.rescue(made, err)
	}
	fmt.Fprint(j.opt.Out, j.farewell(made))
	return nil
}

func (j *job) write(made app) error {
	if err := made.check(); err != nil {
		return err
	}
	files, err := j.files(made)
	if err != nil {
		return err
	}
	if err := writeAll(j.dir, files, j.opt.Force); err != nil {
		return fmt.Errorf("writing to %s: %w", j.dir, err)
	}
	return nil
}

// rescue saves the secrets elsewhere if they could not be written to their folder, because GitHub
// shows them only once.
func (j *job) rescue(made app, cause error) error {
	name, err := writeRescue(j.opt.TempDir, made)
	if err != nil {
		return fmt.Errorf("the App %s exists, but its files could not be written: %w; its secrets could not be saved either: %w; they are lost: create a new key and a new webhook secret in the settings of the App, or delete the App there and start again",
			made.HTMLURL, cause, err)
	}
	return fmt.Errorf("the App %s exists, but its files could not be written: %w; nothing is lost: its key and its webhook secret are in %s (mode 600), as pem and webhook_secret: put them into %s and %s, write %s with app_id %d, and delete that file",
		made.HTMLURL, cause, name, filepath.Join(j.dir, keyFile), filepath.Join(j.dir, secretFile), filepath.Join(j.dir, configFile), made.ID)
}

func writeRescue(dir string, made app) (string, error) {
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "kernelgate-setup-*.json") // mode 600
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(text, '\n'))
	return f.Name(), errors.Join(err, f.Sync(), f.Close())
}
