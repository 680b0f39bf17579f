// Package wire defines the protocol between the thin client and the server, and the names of the hook tools. It contains
// only constants, so that it adds nothing to the start of a tool.
package wire

// The protocol between the thin client and the server. The client begins with the request CommandTool.
//
// If the server needs a file, its answer has KeyWant, a path or "-" for stdin. The client then sends the
// request CommandFile with KeyValue or KeyProblem. The last answer has KeyExit, and may have KeyStderr,
// KeyWrite (the file for KeyStdout) and, as the last pair, KeyStdout. An AMP error also ends the
// conversation.
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
	KeyArgv      = "argv"  // the arguments, joined with NUL bytes
	KeyDirectory = "cwd"   // the caller's working directory, for the log
	KeyStdin     = "stdin" // the kind of the caller's stdin, such as StdinFIFO
	KeyWant      = "want"
	KeyValue     = "value"
	KeyProblem   = "problem" // why a file cannot be read, as the caller will see it
	KeyWrite     = "write"
	KeyStdout    = "stdout"
	KeyStderr    = "stderr"
	KeyExit      = "exit"
)

// The protocol between juju-exec and the server, for programs that do not run in a hook.
//
// The answer to CommandIdentify has KeyUnit, KeyEnvironment and KeyUUID. If the request has KeyClientID, and no such hook
// is running, the answer is the error CodeUnknownClient.
//
// CommandExec has KeyLine. For a command in a relation it also has KeyRelation, KeyRemoteUnit, KeyRemoteService and
// KeyForce. If KeyForce is not empty, the remote unit need not be a member. The answer has KeyID.
//
// CommandAwait has KeyID. Once the command has ended, the answer has KeyExit, KeyStderr, KeyStdout, KeyDropped and
// KeyProblem. Until then it has only KeyID.
const (
	CommandIdentify = "identify"
	CommandExec     = "exec"
	CommandAwait    = "await"

	KeyUnit          = "unit_name"
	KeyEnvironment   = "environment"
	KeyUUID          = "uuid"
	KeyLine          = "line" // the command, a line for a shell
	KeyRelation      = "relation_id"
	KeyRemoteUnit    = "remote_unit"
	KeyRemoteService = "remote_service"
	KeyForce         = "force"
	KeyID            = "id"
	KeyDropped       = "dropped" // bytes of output that were not kept
)

// The kinds of the caller's stdin. StdinNone also stands for a closed stdin, /dev/null, and a socket, which may never
// end.
const (
	StdinNone     = "none"
	StdinFIFO     = "fifo"
	StdinFile     = "file"
	StdinTerminal = "tty"
)

// NullDevice is the device number of /dev/null.
const NullDevice = 1<<8 | 3

// CodeUnknownClient is the AMP error code for a client id that is unknown, or whose hook has ended.
const CodeUnknownClient = "UNKNOWN_CLIENT"

// MaxFile is the size of the largest file or stdin that the client sends, in bytes. A value in a file can have up
// to 16 MiB. One more MiB is for the value's key and syntax, and for other values.
const MaxFile = 17 << 20

// ToolNames contains the names of all hook tools, separated by blanks. It is a single constant, so that the client needs
// no initialization to look up a name. A test compares ToolNames with the list in hookenv/tools.
const ToolNames = "action-fail action-get action-log action-set application-version-set close-port config-get credential-get " +
	"goal-state is-leader juju-log juju-logger juju-reboot leader-get leader-set network-get open-port opened-ports " +
	"payload-register payload-status-set payload-unregister relation-get relation-ids relation-list relation-model-get " +
	"relation-set resource-get secret-add secret-get secret-grant secret-ids secret-info-get secret-remove secret-revoke " +
	"secret-set state-delete state-get state-set status-get status-set storage-add storage-get storage-list unit-get " +
	"unit-relations"
