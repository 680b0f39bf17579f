package client

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

// The kinds of the caller's stdin. Everything that is neither of the others
// (closed, /dev/null, a socket that may never end) is none.
const (
	StdinNone     = "none"
	StdinFIFO     = "fifo"
	StdinFile     = "file"
	StdinTerminal = "tty"
)

// CodeUnknownClient is the AMP error code for a client id that is unknown, or
// whose hook has ended.
const CodeUnknownClient = "UNKNOWN_CLIENT"

// MaxFile is how much of a file or of stdin the client sends, in bytes: a value
// may have 16 MiB, and the rest is for what stands around it.
const MaxFile = 17 << 20

// maxAnswer bounds what the client believes of its own agent, in bytes.
const maxAnswer = 1 << 30
