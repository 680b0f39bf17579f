package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"bijou/state/secret"
)

// shape reports whether a value decodes as the record that readers of the key expect. Any other value would
// stop all readers: the leader, operators, and other agents. A shape accepts unknown members, which newer
// binaries write.
type shape func(value []byte) bool

// objectOf is the shape of a record.
func objectOf[T any](value []byte) bool { return startsWith(value, '{') && decodesAs[T](value) }

// listOf is the shape of a list, which can be null.
func listOf[T any](value []byte) bool { return decodesAs[[]T](value) }

// number is the shape of a counter.
func number(value []byte) bool { return !startsWith(value, 'n') && decodesAs[int](value) }

// anyBytes is the shape of a value that is not JSON.
func anyBytes([]byte) bool { return true }

// startsWith reports whether a JSON value begins with that character, after any white space.
func startsWith(value []byte, first byte) bool {
	value = bytes.TrimLeft(value, " \t\r\n")
	return len(value) > 0 && value[0] == first
}

// decodesAs reports whether the value is exactly one JSON value that decodes as T. Where the type is any, it
// decodes numbers as [json.Number], as readers do.
func decodesAs[T any](value []byte) bool {
	var record T
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if d.Decode(&record) != nil {
		return false
	}
	_, err := d.Token()
	return errors.Is(err, io.EOF)
}

// IsShaped reports whether the value decodes as the record that readers of the key expect. It is true for a
// key that no agent writes.
func IsShaped(key string, value []byte) bool {
	r, _ := find(key)
	return r == nil || r.shape == nil || r.shape(value)
}

// The records that agents write. Package state documents them.
type (
	presenceShape struct {
		Session string    `json:"session"`
		Host    string    `json:"host"`
		PID     int       `json:"pid"`
		Since   time.Time `json:"since"`
		Unit    string    `json:"unit"`
		Serves  bool      `json:"serves"`
		Trouble *struct {
			Message   string    `json:"message"`
			Since     time.Time `json:"since"`
			Attempts  int       `json:"attempts"`
			NextRetry time.Time `json:"next-retry"`
		} `json:"trouble"`
	}
	claimShape struct {
		Epoch  int64 `json:"epoch"`
		Holder *struct {
			Host         string    `json:"host"`
			Folder       string    `json:"folder"`
			Name         string    `json:"name"`
			Boot         string    `json:"boot"`
			PIDNamespace string    `json:"pids"`
			PID          int       `json:"pid"`
			Start        string    `json:"start"`
			Since        time.Time `json:"since"`
		} `json:"holder"`
		FormerBoots []string `json:"former"`
	}
	statusShape struct {
		Status  string         `json:"status"`
		Message string         `json:"message"`
		Data    map[string]any `json:"data"`
		Since   time.Time      `json:"since"`
	}
	settingsShape struct {
		Version int64             `json:"version"`
		Values  map[string]string `json:"values"`
		Blob    string            `json:"blob"`
	}
	unitShape struct {
		Charm             string         `json:"charm"`
		Life              string         `json:"life"`
		Resolved          string         `json:"resolved"`
		ResolvedRelations map[int]string `json:"resolved-relations"`
		Status            statusShape    `json:"status"`
		ActiveWith        string         `json:"active-with"`
		Workload          struct {
			Version string    `json:"version"`
			Since   time.Time `json:"since"`
		} `json:"workload"`
	}
	portShape struct {
		From     int    `json:"from"`
		To       int    `json:"to"`
		Protocol string `json:"protocol"`
		Endpoint string `json:"endpoint"`
	}
	queueShape struct {
		Waiting []int `json:"waiting"`
		Ended   []int `json:"ended"`
		Cancel  []int `json:"cancel"`
	}
	restoredShape struct {
		Backup   time.Time `json:"backup"`
		Differs  string    `json:"differs"`
		Storage  []string  `json:"storage"`
		Adopted  bool      `json:"adopted"`
		Accepted bool      `json:"accepted"`
	}
	actionShape struct {
		Unit       string         `json:"unit"`
		Name       string         `json:"name"`
		Parameters map[string]any `json:"parameters"`
		Command    []string       `json:"command"`
		Relation   *struct {
			ID            int    `json:"id"`
			Name          string `json:"name"`
			RemoteUnit    string `json:"remote-unit"`
			RemoteService string `json:"remote-service"`
		} `json:"relation"`
		Status    string    `json:"status"`
		Enqueued  time.Time `json:"enqueued"`
		Started   time.Time `json:"started"`
		Run       string    `json:"run"`
		Completed time.Time `json:"completed"`
		Progress  []struct {
			Time    time.Time `json:"time"`
			Message string    `json:"message"`
		} `json:"progress"`
		Message string         `json:"message"`
		Code    *int           `json:"code"`
		Results map[string]any `json:"results"`
		Output  struct {
			Stdout  textOrBytes `json:"stdout"`
			Stderr  textOrBytes `json:"stderr"`
			Dropped int64       `json:"dropped"`
			Blob    string      `json:"blob"`
		} `json:"output"`
	}
	storageShape struct {
		Machine  string    `json:"machine"`
		Pool     string    `json:"pool"`
		Size     int64     `json:"size"`
		Made     bool      `json:"made"`
		Bound    bool      `json:"bound"`
		Life     string    `json:"life"`
		Unit     string    `json:"unit"`
		State    string    `json:"state"`
		Location string    `json:"location"`
		ReadOnly bool      `json:"read-only"`
		Since    time.Time `json:"since"`
	}
	machineShape struct {
		Life      string    `json:"life"`
		Status    string    `json:"status"`
		Message   string    `json:"message"`
		Attempts  int       `json:"attempts"`
		RetryAt   time.Time `json:"retry-at"`
		Tools     string    `json:"tools"`
		Addresses struct {
			Private string `json:"private"`
			Public  string `json:"public"`
		} `json:"addresses"`
	}
	machineStorageShape struct {
		All      []string `json:"all"`
		Removing []string `json:"removing"`
	}
	memberShape struct {
		Principal string `json:"principal"`
		Version   int64  `json:"version"`
	}
	hookShape struct {
		Kind           string `json:"kind"`
		Name           string `json:"name"`
		Relation       int    `json:"relation"`
		RelationName   string `json:"relation-name"`
		RemoteUnit     string `json:"remote-unit"`
		RemoteService  string `json:"remote-service"`
		Action         int    `json:"action"`
		Secret         string `json:"secret"`
		SecretRevision int    `json:"secret-revision"`
		Storage        string `json:"storage"`
	}
	opShape struct {
		ID       string    `json:"id"`
		Hook     hookShape `json:"hook"`
		ClientID string    `json:"client-id"`
		Started  time.Time `json:"started"`
		Holder   string    `json:"held-by"`
		Expect   string    `json:"expect"`
		Version  int64     `json:"version"`
	}
	failureShape struct {
		Hook        hookShape `json:"hook"`
		Message     string    `json:"message"`
		Stderr      string    `json:"stderr"`
		Logged      string    `json:"logged"`
		Charm       string    `json:"charm"`
		Since       time.Time `json:"since"`
		Attempts    int       `json:"attempts"`
		RetryAt     time.Time `json:"retry-at"`
		Backoff     int       `json:"backoff"`
		Interrupted bool      `json:"interrupted"`
		ClientID    string    `json:"client-id"`
	}
	workflowShape struct {
		State            string        `json:"state"`
		Charm            string        `json:"charm"`
		Deploying        string        `json:"deploying"`
		ConfigVersion    int64         `json:"config-version"`
		Failure          *failureShape `json:"failure"`
		NextPlace        int64         `json:"next-place"`
		ConfigOwed       bool          `json:"restarted"`
		ConfigOwedFirst  bool          `json:"upgraded"`
		ToldElected      bool          `json:"elected"`
		LeaderVersion    int64         `json:"leader-version"`
		UpgradeOwed      bool          `json:"upgrade-owed"`
		ResourcesVersion int64         `json:"resources-version"`
		Uninstalled      bool          `json:"uninstalled"`
	}
	relationStateShape struct {
		State         string        `json:"state"`
		Failure       *failureShape `json:"failure"`
		CreatedOwed   bool          `json:"created-owed"`
		Name          string        `json:"name"`
		RemoteService string        `json:"remote-service"`
		Peer          bool          `json:"peer"`
	}
	memberStateShape struct {
		State   string `json:"state"`
		Pending string `json:"pending"`
		Place   int64  `json:"place"`
		Version int64  `json:"version"`
		Seen    int64  `json:"seen"`
	}
	hookRunShape struct {
		Seq      int64        `json:"seq"`
		ID       string       `json:"id"`
		Hook     string       `json:"hook"`
		Relation string       `json:"relation"`
		Remote   string       `json:"remote"`
		Started  time.Time    `json:"started"`
		Ended    time.Time    `json:"ended"`
		Exit     int          `json:"exit"`
		Failure  string       `json:"failure"`
		Changes  []string     `json:"changes"`
		More     int          `json:"more"`
		Said     *statusShape `json:"said"`
	}
	logHeadShape struct {
		Batch int64 `json:"batch"`
		Lines int64 `json:"lines"`
	}
	logBatchShape struct {
		First int64 `json:"first"`
		Lines []struct {
			Time    time.Time `json:"time"`
			Level   string    `json:"level"`
			Hook    string    `json:"hook"`
			Message string    `json:"message"`
		} `json:"lines"`
	}
	requestShape struct {
		Kind     string    `json:"kind"`
		Relation int       `json:"relation"`
		Since    time.Time `json:"since"`
	}
	blobHeadShape struct {
		Size     int64     `json:"size"`
		Complete bool      `json:"complete"`
		Touched  time.Time `json:"touched"`
	}
)

// The records of secrets, which package secret defines.
type (
	secretShape = secret.Record
	sealedShape = secret.Sealed
)

// textOrBytes is a text, or {"base64": TEXT} for bytes that are not UTF-8.
type textOrBytes struct{}

// UnmarshalJSON returns an error if the value has neither form. It stores nothing.
func (textOrBytes) UnmarshalJSON(data []byte) error {
	if startsWith(data, '{') {
		var doc struct {
			Base64 []byte `json:"base64"`
		}
		return json.Unmarshal(data, &doc)
	}

	var text string
	return json.Unmarshal(data, &text)
}
