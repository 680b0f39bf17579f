package juju

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCutOptions checks that the options of ssh and scp are read as these programs read them, so that no option
// or value becomes a part of the command.
func TestCutOptions(t *testing.T) {
	for name, test := range map[string]struct {
		words   []string
		letters string
		options [][]string
		rest    []string
	}{
		"no options":                {[]string{"ls", "-l"}, sshValueOptions, nil, []string{"ls", "-l"}},
		"a value in the next word":  {[]string{"-p", "22", "ls"}, sshValueOptions, [][]string{{"-p", "22"}}, []string{"ls"}},
		"a value in the same word":  {[]string{"-p22", "ls"}, sshValueOptions, [][]string{{"-p", "22"}}, []string{"ls"}},
		"a value like an option":    {[]string{"-i", "-Lx", "ls"}, sshValueOptions, [][]string{{"-i", "-Lx"}}, []string{"ls"}},
		"a value with a letter":     {[]string{"-oL", "ls"}, sshValueOptions, [][]string{{"-o", "L"}}, []string{"ls"}},
		"an interface and a tag":    {[]string{"-B", "eth0", "-P", "tag", "ls"}, sshValueOptions, [][]string{{"-B", "eth0"}, {"-P", "tag"}}, []string{"ls"}},
		"a bundle":                  {[]string{"-tt", "ls"}, sshValueOptions, [][]string{{"-t"}, {"-t"}}, []string{"ls"}},
		"a bundle, value behind it": {[]string{"-NL", "8080:x:80"}, sshValueOptions, [][]string{{"-N"}, {"-L", "8080:x:80"}}, nil},
		"a bundle, value within it": {[]string{"-NL8080:x:80", "ls"}, sshValueOptions, [][]string{{"-N"}, {"-L", "8080:x:80"}}, []string{"ls"}},
		"no value":                  {[]string{"-NL"}, sshValueOptions, [][]string{{"-N"}, {"-L"}}, nil},
		"a long option":             {[]string{"--Long", "ls"}, sshValueOptions, [][]string{{"--Long"}}, []string{"ls"}},
		"two dashes":                {[]string{"-4", "--", "-L"}, sshValueOptions, [][]string{{"-4"}}, []string{"--", "-L"}},
		"scp's sftp server":         {[]string{"-D", "sftp", "a", "0:b"}, scpValueOptions, [][]string{{"-D", "sftp"}}, []string{"a", "0:b"}},
		"scp's bundle":              {[]string{"-rP", "22", "a", "0:b"}, scpValueOptions, [][]string{{"-r"}, {"-P", "22"}}, []string{"a", "0:b"}},
	} {
		t.Run(name, func(t *testing.T) {
			options, rest := cutOptions(test.words, test.letters)
			if diff := cmp.Diff(test.options, options); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
			if len(rest) == 0 {
				rest = nil
			}
			if diff := cmp.Diff(test.rest, rest); diff != "" {
				t.Errorf("rest (-want +got):\n%s", diff)
			}
		})
	}
}
