package agent

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"bijou/state"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
)

// crowd is a hook that calls its tools from many processes at once, several times each. It fails if a tool
// fails, or if two calls of the same tool print different values: all tools of a hook must see the same
// values.
const crowd = `
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
jobs=()
ask() { "${@:2}" >"$out/$1.$i" & jobs+=($!); }
for i in $(seq 12); do
	ask remote relation-get --format=json -
	ask config config-get --format=json
	ask list relation-list --format=json
	ask address unit-get private-address
	ask status status-get --format=json
	ask ids relation-ids db
	ask network network-get --format=json db
	ask goals goal-state --format=json
	ask leads is-leader --format=json
	ask leader leader-get --format=json -
	ask note state-set "note$i=$i"
	ask mine relation-set "k$i=$i" "last=$i"
	ask port open-port "$((8000 + i))"
done
for job in "${jobs[@]}"; do wait "$job" || exit 2; done
for kind in remote config list address status ids network goals leads leader; do
	[ "$(cat "$out/$kind".* | sort -u | wc -l)" = "$(wc -l <"$out/$kind.1")" ] || { cat "$out/$kind".* >&2; exit 3; }
done
for i in $(seq 12); do
	[ "$(relation-get "k$i" "$JUJU_UNIT_NAME")" = "$i" ] || exit 4
	[ "$(state-get "note$i")" = "$i" ] || exit 5
done
relation-set done=yes
`

// TestToolsInParallel runs the tools of a hook in parallel while others constantly change the settings
// that they read.
func TestToolsInParallel(t *testing.T) {
	need.Whole(t)
	once(t, func(r *rig) {
		r.manual()
		r.recordPair(map[string]string{"db-relation-joined": crowd})
		id := statetest.Relate(t, r.st, "wordpress", "mysql").ID
		ctx, cancel := context.WithCancel(t.Context())
		var writer sync.WaitGroup
		defer writer.Wait()
		defer cancel()
		r.start()
		r.eventually("mysql is in", func() bool { return len(r.members(id)) == 2 })
		writer.Go(func() { r.restless(ctx, id) })
		r.eventually("the hook has ended", func() bool {
			return r.settings(id, "wordpress/0")["done"] != "" || r.uniter("wordpress/0").Relations[id].Failure != nil
		})
		got := r.settings(id, "wordpress/0")
		for i := 1; i <= 12; i++ {
			if got[fmt.Sprint("k", i)] != fmt.Sprint(i) {
				t.Errorf("k%d is %q\n%s", i, got[fmt.Sprint("k", i)], r.logs())
			}
		}
		ports := statetest.Read(t, r.st, func(v *state.View) ([]state.Port, error) { return v.Ports("wordpress/0") })
		if len(ports) != 12 {
			t.Errorf("open ports: %v", ports)
		}
	})
}

func (r *rig) members(relation int) []state.Member {
	return statetest.Read(r.t, r.st, func(v *state.View) ([]state.Member, error) { return v.Members(relation) })
}

// restless changes mysql's settings until ctx is done.
func (r *rig) restless(ctx context.Context, relation int) {
	for i := 0; ctx.Err() == nil; i++ {
		value := fmt.Sprint(i)
		err := r.st.Update(ctx, func(tx *state.Tx) error {
			_, err := tx.MergeSettings(relation, "mysql/0", map[string]*string{"restless": &value})
			return err
		})
		if err != nil && ctx.Err() == nil {
			r.t.Errorf("mysql's settings: %v", err)
			return
		}
	}
}
