package console

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// moveOptionsFirst puts options before words: kong does not resume a list of words after
// an option inside it, as in `run-action UNIT ACTION --wait KEY=VALUE`. Commands that pass
// on what they do not know are left alone, as is what follows two dashes.
func moveOptionsFirst(node *kong.Node, args []string) []string {
	var options, words []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return slices.Concat(options, words, args[i:])
		}
		if len(arg) > 1 && arg[0] == '-' {
			options = append(options, arg)
			if i+1 < len(args) && takesValue(node, arg) {
				i++
				options = append(options, args[i])
			}
			continue
		}
		child := findCommand(node, arg)
		if len(words) > 0 || child == nil {
			words = append(words, arg)
			continue
		}
		node, options = child, append(options, arg)
		if isPassthrough(node) {
			return args
		}
	}
	return slices.Concat(options, words)
}

func findCommand(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Type == kong.CommandNode && (child.Name == name || slices.Contains(child.Aliases, name)) {
			return child
		}
	}
	return nil
}

func isPassthrough(node *kong.Node) bool {
	return node.Passthrough || slices.ContainsFunc(node.Positional, func(p *kong.Positional) bool {
		return p.Passthrough || p.PassthroughMode != kong.PassThroughModeNone
	})
}

func takesValue(node *kong.Node, arg string) bool {
	if name, long := strings.CutPrefix(arg, "--"); long {
		f := findFlag(node, func(f *kong.Flag) bool { return f.Name == name || slices.Contains(f.Aliases, name) })
		return f != nil && !f.IsBool() && !f.IsCounter()
	}
	letters := []rune(arg[1:])
	for i, letter := range letters {
		f := findFlag(node, func(f *kong.Flag) bool { return f.Short == letter })
		if f == nil || !f.IsBool() && !f.IsCounter() {
			return f != nil && i == len(letters)-1
		}
	}
	return false
}

func findFlag(node *kong.Node, is func(*kong.Flag) bool) *kong.Flag {
	for ; node != nil; node = node.Parent {
		if i := slices.IndexFunc(node.Flags, is); i >= 0 {
			return node.Flags[i]
		}
	}
	return nil
}
