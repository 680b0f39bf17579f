// Package wire has the words that the thin client and the server exchange, and the names that
// the client answers to: constants only, since a linked tool has no time for more.
//
// hookenv/client, hookenv/client/early and the packages that serve tools import it.
package wire

// The words of the conversation between the thin client and the server. The
// client asks CommandTool; each answer holds either KeyWant (a path, or "-" for
// stdin), which the client answers by asking CommandFile with KeyValue or
// KeyProblem, or, at the end, KeyExit with KeyStdout, KeyStderr and KeyWrite (a
// path that KeyStdout goes to), KeyStdout last. An AMP error ends it too.
const (
	CommandTool = "tool"
	CommandFile = "file"

	KeyCommand   = "_command"
	KeyAsk       = "_ask"
	KeyAnswer    = "_answer"
	KeyError     = "_error"
	KeyErrorCode = "_error_code"
	KeyErrorText = "_error_description"

	KeyClientID  = "client_id"
	KeyArgv      = "argv"  // joined with NUL bytes
	KeyDirectory = "cwd"   // for the log
	KeyStdin     = "stdin" // one of the kinds below
	KeyWant      = "want"
	KeyValue     = "value"
	KeyProblem   = "problem" // why a file cannot be read, for people
	KeyWrite     = "write"
	KeyStdout    = "stdout"
	KeyStderr    = "stderr"
	KeyExit      = "exit"
)

// The words between juju-exec and the server: commands of programs that run in no hook.
//
// CommandIdentify is answered by KeyUnit, KeyEnvironment and KeyUUID; with KeyClientID by
// CodeUnknownClient unless that hook runs. CommandExec takes KeyLine and, for a command that is about
// a relation, KeyRelation, KeyRemoteUnit, KeyRemoteService and KeyForce (not empty: the remote unit may
// be no member); its answer has KeyID. CommandAwait takes KeyID: its answer has KeyExit, KeyStderr,
// KeyStdout, KeyDropped and KeyProblem once the command has ended, and none of them while it has not.
const (
	CommandIdentify = "identify"
	CommandExec     = "exec"
	CommandAwait    = "await"

	KeyUnit          = "unit_name"
	KeyEnvironment   = "environment"
	KeyUUID          = "uuid"
	KeyLine          = "line" // for a shell
	KeyRelation      = "relation_id"
	KeyRemoteUnit    = "remote_unit"
	KeyRemoteService = "remote_service"
	KeyForce         = "force"
	KeyID            = "id"
	KeyDropped       = "dropped" // bytes of output that were not kept
)

// The kinds of the caller's stdin. Everything that is neither of the others
// (closed, /dev/null, a socket that may never end) is none.
const (
	StdinNone     = "none"
	StdinFIFO     = "fifo"
	StdinFile     = "file"
	StdinTerminal = "tty"
)

// NullDevice is /dev/null, as the kernel numbers devices.
const NullDevice = 1<<8 | 3

// CodeUnknownClient is the AMP error code for a client id that is unknown, or whose hook has ended.
const CodeUnknownClient = "UNKNOWN_CLIENT"

// MaxFile is how much of a file or of stdin the client sends, in bytes: a value
// may have 16 MiB, and the rest is for what stands around it.
const MaxFile = 17 << 20

// ToolNames are the names that the client answers to: one constant, so that looking a name
// up costs nothing at start. A test holds that of hookenv/tools against it.
const ToolNames = "action-fail action-get action-log action-set application-version-set close-port config-get credential-get " +
	"goal-state is-leader juju-log juju-logger juju-reboot leader-get leader-set network-get open-port opened-ports " +
	"payload-register payload-status-set payload-unregister relation-get relation-ids relation-list relation-model-get " +
	"relation-set resource-get secret-add secret-get secret-grant secret-ids secret-info-get secret-remove secret-revoke " +
	"secret-set state-delete state-get state-set status-get status-set storage-add storage-get storage-list unit-get " +
	"unit-relations"
