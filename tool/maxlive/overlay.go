package maxlive

import (
	"encoding/json"
	"os"
)

// UseOverlay takes the replaced files of a list as "go build -overlay" has them.
func (c *Config) UseOverlay(name string) error {
	if name == "" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var list struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	c.Overlay = map[string][]byte{}
	for file, by := range list.Replace {
		if by == "" {
			continue
		}
		if c.Overlay[file], err = os.ReadFile(by); err != nil {
			return err
		}
	}
	c.BuildFlags = append(c.BuildFlags, "-overlay="+name)
	return nil
}
