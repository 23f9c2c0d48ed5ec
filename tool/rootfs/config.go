package rootfs

// Config is what an image says about running it. The fields are those of an
// OCI image's config, under the same names.
type Config struct {
	User       string   `json:"User,omitempty"`
	Env        []string `json:"Env,omitempty"`
	Entrypoint []string `json:"Entrypoint,omitempty"`
	Cmd        []string `json:"Cmd,omitempty"`
	WorkingDir string   `json:"WorkingDir,omitempty"`
}

// Args is the image's default command.
func (c *Config) Args() []string {
	if c == nil {
		return nil
	}
	return append(append([]string(nil), c.Entrypoint...), c.Cmd...)
}
