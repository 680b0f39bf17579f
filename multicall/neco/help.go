package neco

import (
	"embed"
	"io/fs"
)

//go:embed help
var helpFiles embed.FS

// helpTexts has a file for each command: help/deploy.txt, help/config/set.txt.
func helpTexts() fs.FS {
	texts, err := fs.Sub(helpFiles, "help")
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return texts
}
