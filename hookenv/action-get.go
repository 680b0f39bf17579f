package hookenv

import (
	"context"
	"strings"
)

func actionGet() Tool {
	return Tool{
		Name:     "action-get",
		Summary:  "print parameters of the running action",
		Usage:    "[KEY[.KEY]...]",
		Notes:    "Without KEY it prints all parameters; dots lead into dictionaries. A parameter that is not there is the empty text.",
		Examples: []string{"action-get filename", "action-get target.host", "action-get --format=json"},
		prepare: func(f *flagSet) runner {
			g := &actionGetter{}
			g.output.addFlag(f)
			return g.run
		},
	}
}

type actionGetter struct{ output }

func (g *actionGetter) run(ctx context.Context, inv *invocation) error {
	if err := inv.limitArgs(1); err != nil {
		return err
	}
	action, err := inv.hook.Action(ctx)
	if err != nil {
		return err
	}
	var value any = action.Parameters
	if len(inv.args) > 0 && inv.args[0] != "" {
		value = followKeys(action.Parameters, strings.Split(inv.args[0], "."))
	}
	return g.print(inv, stringList(value))
}

// followKeys returns nil where there is nothing.
func followKeys(value any, keys []string) any {
	for _, key := range keys {
		dictionary, _ := value.(map[string]any)
		value = dictionary[key]
	}
	return value
}

// stringList makes a list of nothing but texts a []string, which is printed one item a line.
func stringList(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}
	texts := make([]string, len(list))
	for i, item := range list {
		if texts[i], ok = item.(string); !ok {
			return value
		}
	}
	return texts
}
