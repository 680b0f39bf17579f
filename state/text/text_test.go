package text

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"as it is: ü":                "as it is: ü",
		"\x1b[31mred\nnext\r":        `\x1b[31mred\nnext\r`,
		"tab\tstays":                 "tab\tstays",
		"\u009b31m\x7f\x00":          `\u009b31m\x7f\x00`,
		"a\u202eb\u2066c\u2069":      `a\u202eb\u2066c\u2069`,
		"a\u202ab\u2028c\u2029":      `a\u202ab\u2028c\u2029`,
		"a\u200eb\u200fc\u061cd":     `a\u200eb\u200fc\u061cd`,
		"it's \"quoted\" \\ and 'so": "it's \"quoted\" \\ and 'so",
	} {
		t.Run(text, func(t *testing.T) {
			if got := Escape(text); got != want {
				t.Errorf("%q is %q, want %q", text, got, want)
			}
		})
	}
}

func TestEscapeJSONKeepsValues(t *testing.T) {
	want := "bell \a, escape \x1b, \u009b, \x7f, right to left \u202e, line \u2028."
	data, err := json.Marshal(map[string]string{"m": want})
	if err != nil {
		t.Fatal(err)
	}
	text := EscapeJSON(string(data))
	if strings.IndexFunc(text, isHarmful) >= 0 {
		t.Errorf("%q", text)
	}
	var got map[string]string
	if err := json.Unmarshal([]byte(text), &got); err != nil || got["m"] != want {
		t.Errorf("%q, %v", got["m"], err)
	}
}

func TestMarshalYAMLKeepsValues(t *testing.T) {
	const harmful = "\x7f\u0085\u009b\u2028\u2029\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
	want := map[string]string{"plain": "a: b", "lines": "a\n  b\n", "2026-01-01": "true", "quoted": `\u202E`}
	for i, r := range harmful {
		want[fmt.Sprintf("key%d %c", i, r)] = fmt.Sprintf("a%c b", r)
		want[fmt.Sprint(i)] = fmt.Sprintf("a\n\tb%c\n", r)
	}
	type document struct {
		At    time.Time           `yaml:"at"`
		None  []string            `yaml:"none"`
		Texts []map[string]string `yaml:"texts"`
	}
	in := document{time.Unix(1, 0).UTC(), []string{}, []map[string]string{want}}
	text, err := MarshalYAML(in)
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(string(text), isHarmfulInYAML); i >= 0 {
		t.Errorf("%q stands as it is in:\n%q", text[i:min(i+4, len(text))], text)
	}
	var got document
	if err := yaml.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, in) {
		t.Errorf("%q\nis read back as\n%q: %v", text, got, err)
	}
	one, err := MarshalYAML([]string{"a\u202eb", "c"})
	if want := "- \"a\\u202Eb\"\n- c\n"; err != nil || string(one) != want {
		t.Errorf("%q, want %q; %v", one, want, err)
	}
}

func secretNames() []string {
	return strings.Fields(`password passwd pass passphrase passcode password1 Password PASSWORD
		db-password db_password db.password dbPassword DBPassword admin-passwd MYSQL_ROOT_PASSWORD PGPASSWORD mysql-pass-phrase
		pw user-pw rootPw secret client-secret clientSecret shared_secret SECRET_KEY token access-token accessToken APIToken tokens
		key api-key apiKey API_KEY apikey ssh.key private-key privateKey private_key tls.key encryption-key2 keys
		credential credentials aws-credentials dsn database_dsn sentry.DSN auth basic-auth REDIS_AUTH auth.header cert tls-cert server_cert clientCert certs`)
}

func plainNames() []string {
	return strings.Fields(`host hostname port address private-address public-address ingress-address egress-subnets private-ip ip
		user username user-name userName admin-user DB_USER db-user login owner email
		public-key publicKey PUBLIC_KEY ssh-public-key public-keys authorized-keys public_key.pem
		name database db schema url uri endpoint path version mode status state size count timeout interval
		author authority monkey keyboard keystone-host compass bypass-proxy certificate-path tokenizer secretary
		hockey turkey donkey series region zone workers colour color charset options enabled replicas`)
}

func TestNamesOfSecrets(t *testing.T) {
	secret, plain := secretNames(), plainNames()
	if len(secret) < 40 || len(plain) < 40 {
		t.Errorf("%d names of secrets, %d others", len(secret), len(plain))
	}
	for _, name := range secret {
		if !IsSecret(name) {
			t.Errorf("%s is shown", name)
		}
	}
	for _, name := range plain {
		if IsSecret(name) {
			t.Errorf("%s is hidden", name)
		}
	}
}

// TestForms checks that each form hides values whose names mark them as secrets, and no other values.
func TestForms(t *testing.T) {
	for _, form := range []string{
		`setting changed: "NAME"="VALUE" (was unset)`,
		`setting changed: "NAME"="VALUE" (was "VALUE") in relation-1, by me@here`,
		`setting changed: "NAME"="VALUE"... (300 bytes) (was "VALUE"... (302 bytes))`,
		`setting removed: "NAME" (was "VALUE")`,
		`relation-2 of one/0: setting changed: "NAME"="VALUE" (was unset)`,
		`+ relation-set host=h NAME=VALUE port=1`, `++ NAME=VALUE`, `+ x 'NAME=VALUE and more'`, `"NAME=VALUE"`,
		`+ export x=NAME=VALUE`, `NAME=$'VALUE'`, `NAME='VALUE'`, `NAME="VALUE"`,
		`{"a": 1, "NAME": "VALUE", "b": 2}`, `{'NAME': 'VALUE'}`, `{"NAME":VALUE}`, `"NAME": ["VALUE", "VALUE"]`,
		`NAME: VALUE`, `  - NAME: VALUE`, `NAME: "VALUE"`, "several\nNAME: VALUE\nlines",
		`mysqldump --host h --NAME VALUE db`, `mysqldump --NAME=VALUE db`,
		`Server=h;User Id=sa;NAME=VALUE;Database=d`, `host=h port=1 NAME=VALUE dbname=d`,
		`https://h/login?a=1&NAME=VALUE&b=2`,
	} {
		for _, name := range []string{"password", "dbPassword", "API_KEY"} {
			text := strings.NewReplacer("NAME", name, "VALUE", "s3cr3t").Replace(form)
			if got := HideSecrets(text); strings.Contains(got, "s3cr3t") || !strings.Contains(got, Hidden) {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
		for _, name := range []string{"username", "public-key", "host"} {
			text := strings.NewReplacer("NAME", name, "VALUE", "s3cr3t").Replace(form)
			if got := HideSecrets(text); got != text {
				t.Errorf("%q is shown as %q", text, got)
			}
		}
	}
}

func TestHideSecrets(t *testing.T) {
	for text, want := range map[string]string{
		`setting changed: "password"="a \" b" (was "c")`:                       `setting changed: "password"=(hidden) (was (hidden))`,
		`setting changed: "password"="x" (was unset)`:                          `setting changed: "password"=(hidden) (was unset)`,
		`"db-url"="postgres://u:s3cr3t@db:5432/x"`:                             `"db-url"="postgres://u:(hidden)@db:5432/x"`,
		`redis://:s3cr3t@h:6379/0`:                                             `redis://:(hidden)@h:6379/0`,
		`amqp://u:a@h1:1/v,amqp://u:b@h2:1/v`:                                  `amqp://u:(hidden)@h1:1/v,amqp://u:(hidden)@h2:1/v`,
		`mongodb://u:p@ss@h1:1,h2:2/db`:                                        `mongodb://u:(hidden)@h1:1,h2:2/db`,
		`postgres://u:a/b@h/db`:                                                `postgres://u:(hidden)@h/db`,
		`u:s3cr3t@tcp(h:3306)/db?x=y`:                                          `u:(hidden)@tcp(h:3306)/db?x=y`,
		`u:s3cr3t@unix(/run/m.sock)/db`:                                        `u:(hidden)@unix(/run/m.sock)/db`,
		`u:s3cr3t@/db`:                                                         `u:(hidden)@/db`,
		`u:s3cr3t@h:3306/db`:                                                   `u:(hidden)@h:3306/db`,
		`Server=h;User Id=sa;Password=a b;Database=d`:                          `Server=h;User Id=sa;Password=(hidden);Database=d`,
		`Server=h;Uid=sa;Pwd=x;Database=d`:                                     `Server=h;Uid=sa;Pwd=(hidden);Database=d`,
		`"config"="{\"user\": \"u\", \"password\": \"x \\\" y\"}" (was unset)`: `"config"="{\"user\": \"u\", \"password\": (hidden)}" (was unset)`,
		`"config"="user: u\npassword: x\nhost: h"`:                             `"config"="user: u\npassword: (hidden)\nhost: h"`,
		`"tls/private-key": "x"`:                                               `"tls/private-key": (hidden)`,
		`"db:password+1"="x" (was "y")`:                                        `"db:password+1"=(hidden) (was (hidden))`,
		`token/2=x`:                                                            `token/2=(hidden)`,
		`password=123/abc x`:                                                   `password=(hidden) x`,
		`https://h/x?user=u&password=x&sslmode=y`:                              `https://h/x?user=u&password=(hidden)&sslmode=y`,
	} {
		t.Run(text, func(t *testing.T) {
			if got := HideSecrets(text); got != want {
				t.Errorf("%q is shown as %q, want %q", text, got, want)
			}
		})
	}
}

// TestHiddenAndShown checks output of charms and programs. In text that must be hidden the secret is s3cr3t,
// and want is the whole result. Text that must be shown does not change.
func TestHiddenAndShown(t *testing.T) {
	hidden := []struct{ text, want string }{
		// URLs
		{"postgres://app:s3cr3t@db:5432/x", "postgres://app:(hidden)@db:5432/x"},
		{"cannot connect to amqp://u:s3cr3t@h/v: refused", "cannot connect to amqp://u:(hidden)@h/v: refused"},
		{"https://x-access-token:s3cr3t@github.com/a/b.git", "https://x-access-token:(hidden)@github.com/a/b.git"},
		{"postgres://app:verified@db/x", "postgres://app:(hidden)@db/x"},
		{"GET /login?user=u&access_token=s3cr3t HTTP/1.1", "GET /login?user=u&access_token=(hidden) HTTP/1.1"},
		{"https://h/cb#access_token=s3cr3t&state=1", "https://h/cb#access_token=(hidden)&state=1"},

		// settings of programs and shells
		{"password=s3cr3t", "password=(hidden)"},
		{"+ export PGPASSWORD=s3cr3t", "+ export PGPASSWORD=(hidden)"},
		{"+ MYSQL_PWD=s3cr3t mysql -u root", "+ MYSQL_PWD=(hidden) mysql -u root"},
		{"AWS_SECRET_ACCESS_KEY=s3cr3t/x+y", "AWS_SECRET_ACCESS_KEY=(hidden)"},
		{"aws_secret_access_key = s3cr3t", "aws_secret_access_key = (hidden)"},
		{"SecretAccessKey: s3cr3t", "SecretAccessKey: (hidden)"},
		{"SESSION_SECRET='s3cr3t and more' ./run", "SESSION_SECRET=(hidden) ./run"},
		{"authtoken=s3cr3t", "authtoken=(hidden)"},
		{"secretkey: s3cr3t", "secretkey: (hidden)"},
		{"password = s3cr3t", "password = (hidden)"},
		{"[client]\nuser = root\npassword = s3cr3t\nhost = h", "[client]\nuser = root\npassword = (hidden)\nhost = h"},
		{"host=h password=s3cr3t dbname=d", "host=h password=(hidden) dbname=d"},
		{"Server=h;Password=s3cr3t;Database=d", "Server=h;Password=(hidden);Database=d"},
		{`setting changed: "token"="s3cr3t" (was "s3cr3t")`, `setting changed: "token"=(hidden) (was (hidden))`},

		// options
		{"mysql --password s3cr3t db", "mysql --password (hidden) db"},
		{"mysql --password=s3cr3t db", "mysql --password=(hidden) db"},
		{"vault login --token 's3cr3t x'", "vault login --token (hidden)"},
		{"tool --api-key s3cr3t --verbose", "tool --api-key (hidden) --verbose"},
		{"curl -u admin:s3cr3t https://h/", "curl -u admin:(hidden) https://h/"},
		{"curl -s --user 'admin:s3cr3t' https://h/", "curl -s --user 'admin:(hidden)' https://h/"},

		// JSON, YAML and Python dictionaries
		{`{"user": "u", "api_key": "s3cr3t"}`, `{"user": "u", "api_key": (hidden)}`},
		{`{"user":"u","password":s3cr3t}`, `{"user":"u","password":(hidden)}`},
		{`{'name': 'x', 'client_secret': 's3cr3t'}`, `{'name': 'x', 'client_secret': (hidden)}`},
		{`got: {"a": {"token": "s3cr3t"}}`, `got: {"a": {"token": (hidden)}}`},
		{`  "password": s3cr3t,`, `  "password": (hidden),`},
		{"db:\n  user: u\n  password: s3cr3t\n  port: 1", "db:\n  user: u\n  password: (hidden)\n  port: 1"},
		{"- token: 's3cr3t'", "- token: (hidden)"},
		{`PASSWORD: "s3cr3t"`, `PASSWORD: (hidden)`},
		{"password: s3cr3t\r\nuser: u", "password: (hidden)\r\nuser: u"},
		{`tokens: ["s3cr3t", "s3cr3t"]` + "\n" + `"tokens": ["s3cr3t"]`, "tokens: (hidden)\n\"tokens\": (hidden)"},

		// headers
		{"Authorization: Bearer s3cr3t", "Authorization: Bearer (hidden)"},
		{"> Authorization: Basic s3cr3t==", "> Authorization: Basic (hidden)"},
		{"> X-Auth-Token: s3cr3t", "> X-Auth-Token: (hidden)"},
		{"authorization: s3cr3t", "authorization: (hidden)"},
		{`curl -H "Authorization: Bearer s3cr3t" https://h/`, `curl -H "Authorization: (hidden)" https://h/`},
		{`curl -H 'X-Api-Key: s3cr3t' https://h/`, `curl -H 'X-Api-Key: (hidden)' https://h/`},
		{`curl --header="PRIVATE-TOKEN: s3cr3t" h`, `curl --header="PRIVATE-TOKEN: (hidden)" h`},
		{`{"Authorization": "Bearer s3cr3t"}`, `{"Authorization": (hidden)}`},
		{`{'Authorization': 'Bearer s3cr3t', 'Accept': 'x'}`, `{'Authorization': (hidden), 'Accept': 'x'}`},
		{`sent b'GET / HTTP/1.1 Authorization: Bearer s3cr3t'`, `sent b'GET / HTTP/1.1 Authorization: Bearer (hidden)'`},

		// private keys, and SQL
		{"-----BEGIN RSA PRIVATE KEY-----\ns3cr3t\n-s3cr3t-\n-----END RSA PRIVATE KEY-----\nnext", "-----BEGIN RSA PRIVATE KEY-----(hidden)-----END RSA PRIVATE KEY-----\nnext"},
		{"-----BEGIN OPENSSH PRIVATE KEY-----\ns3cr3t\ns3cr3t", "-----BEGIN OPENSSH PRIVATE KEY-----(hidden)"},
		{"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\ns3cr3t\n-----END PGP PRIVATE KEY BLOCK-----", "-----BEGIN PGP PRIVATE KEY BLOCK-----(hidden)-----END PGP PRIVATE KEY BLOCK-----"},
		{`"x"="-----BEGIN PRIVATE KEY-----\ns3cr3t\n-----END PRIVATE KEY-----\n"`, `"x"="-----BEGIN PRIVATE KEY-----(hidden)-----END PRIVATE KEY-----\n"`},
		{"CREATE USER 'a' IDENTIFIED BY 's3cr3t'", "CREATE USER 'a' IDENTIFIED BY (hidden)"},
		{"ALTER USER a WITH ENCRYPTED PASSWORD 's3cr3t';", "ALTER USER a WITH ENCRYPTED PASSWORD (hidden);"},
	}
	for _, test := range hidden {
		t.Run(test.text, func(t *testing.T) {
			got := HideSecrets(test.text)
			if got != test.want {
				t.Errorf("it is shown as\n%q, want\n%q", got, test.want)
			}
			if again := HideSecrets(got); again != got {
				t.Errorf("it becomes\n%q, then\n%q", got, again)
			}
		})
	}

	shown := []string{
		// names of errors, as Python, Java, Go and others print them
		"KeyError: 'x'", `KeyError: "password"`, "KeyError: password", "  KeyError: 'db-password'", "install: exit code 1: KeyError: 'x'",
		"TokenError: Invalid", "SecretNotFoundError: secret:abc", "ops.model.SecretNotFoundError: secret:abc", "hvac.exceptions.InvalidPath: secret/x",
		"psycopg2.errors.InvalidPassword: FATAL", "jwt.exceptions.InvalidTokenError: x", "java.security.InvalidKeyException: x", "PasswordExpired: x",
		"TokenExpired: 10s", "MissingToken: x", "AuthError: 403", "UnknownKey: x", "Traceback (most recent call last):\n  File \"x.py\", line 3\nKeyError: 'x'",
		`{"error": {"TokenError": "Invalid"}}`, "key_error=3", "auth-errors: 17",

		// sentences
		"the key is missing", "token expired at line 3", "ssh-key: not found", "ssh-key: missing", "cert: expired", "auth: ok", "password: required",
		"auth: connection refused by server", "token: invalid character", "credentials: none", "Authorization: Bearer token missing",
		"Authorization: denied by policy", "secret:abc", "secret-get: permission denied", `cannot read secret "db-password": permission denied`,
		`setting "token": not set`, "no value for 'password'", "unknown option \"api-key\"", "the option --token is missing", "give --key or --cert",
		"say --password, not -p", "usage: login --password PASSWORD", "usage: relation-set KEY=VALUE", "want key=value", "--token=<token>",
		"password for root was changed", "wrong password for user root at 10.1.2.3", "hooks/auth.py:12: SyntaxError", "lib/token.py: SyntaxError",
		"key.go:12: undefined", "token-store: 3 tokens of 5 are left",

		// text that only looks like a secret
		`"password": null`, `{'password': None, "token": true}`, "password: null", "PWD=/var/lib/charm", "OLDPWD is not set", "public-key: AAAA", "authorized-keys=x",
		"https://user@host/path", "git@github.com:a/b.git", "docker run -u 1000:1000 x", "docker run --user app:app x", "curl -u admin https://h/",
		"-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nMII\n-----END PUBLIC KEY-----",
	}
	for _, text := range shown {
		t.Run(text, func(t *testing.T) {
			if got := HideSecrets(text); got != text {
				t.Errorf("it is shown as\n%q", got)
			}
		})
	}
	if len(hidden) < 30 || len(shown) < 30 {
		t.Errorf("only %d lines are hidden and %d shown", len(hidden), len(shown))
	}
}

// TestKeyBlock checks a private key that a hook prints line by line.
func TestKeyBlock(t *testing.T) {
	for name, test := range map[string]struct{ lines, want []string }{
		"a key": {
			[]string{"before", "-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", "MIIEpA+/", "Qw==", "-----END RSA PRIVATE KEY-----", "after"},
			[]string{"before", "-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", Hidden, Hidden, "-----END RSA PRIVATE KEY-----", "after"},
		},
		"traced by a shell": {
			[]string{"+ echo '-----BEGIN PRIVATE KEY-----", "MIIEpA", "-----END PRIVATE KEY-----'", "done"},
			[]string{"+ echo '-----BEGIN PRIVATE KEY-----", Hidden, "-----END PRIVATE KEY-----'", "done"},
		},
		"indented, among others": {
			[]string{"key: |", "  -----BEGIN OPENSSH PRIVATE KEY-----", "  b3BlbnNzaC1r", "another line meanwhile", "  AAAA", "  -----END OPENSSH PRIVATE KEY-----"},
			[]string{"key: |", "  -----BEGIN OPENSSH PRIVATE KEY-----", Hidden, "another line meanwhile", Hidden, "  -----END OPENSSH PRIVATE KEY-----"},
		},
		"whole in one line": {
			[]string{"-----BEGIN PRIVATE KEY----- MII -----END PRIVATE KEY-----", "word"},
			[]string{"-----BEGIN PRIVATE KEY----- MII -----END PRIVATE KEY-----", "word"},
		},
		"what is public": {
			[]string{"-----BEGIN CERTIFICATE-----", "MII", "-----END CERTIFICATE-----"},
			[]string{"-----BEGIN CERTIFICATE-----", "MII", "-----END CERTIFICATE-----"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var k KeyBlock
			var got []string
			for _, line := range test.lines {
				got = append(got, k.Hide(line))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}

	var endless KeyBlock
	endless.Hide("-----BEGIN PRIVATE KEY-----")
	for range maxKeyLines {
		endless.Hide("AAAA")
	}
	if got := endless.Hide("AAAA"); got != "AAAA" {
		t.Errorf("a key without an end hides for ever: %q", got)
	}
}

func TestShownAsItIs(t *testing.T) {
	for _, text := range []string{
		"", "plain text", "a = b", "12:30:01 INFO x", "auth: connection refused by server", "cert: it has expired",
		"http://host:8080/users/@me", "https://user@host/path", "git@github.com:a/b.git", "git+ssh://git@host:22/a",
		"registry:5000/image:tag@sha256:0123456789abcdef0123456789abcdef", "image:tag@sha256:0123456789abcdef0123456789abcdef",
		`hook "install" failed: exit code 1`, "Get:1 http://deb.debian.org/debian bookworm/main amd64 [53.5 kB]",
		"error: cannot open store \"etcd://db1:2379/bijou/prod?user=bijou\": etcd refuses the login: wrong user or password: x",
		"PWD=/var/lib/charm", "mail to a@b.c at 12:30",
	} {
		if got := HideSecrets(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

// TestHidingTwiceChangesNothing checks that a text does not change if secrets are hidden in it again, for
// example when a log file is shown.
func TestHidingTwiceChangesNothing(t *testing.T) {
	for _, text := range []string{`password=x y`, `"password"="x" (was "y")`, `a://u:p@h/?token=x&b=c`, `password: x`, `--password x`} {
		once := HideSecrets(text)
		if again := HideSecrets(once); again != once {
			t.Errorf("%q becomes %q, then %q", text, once, again)
		}
	}
}

func BenchmarkHideSecrets(b *testing.B) {
	for name, text := range map[string]string{
		"plain":   "a line that a hook prints again and again",
		"colons":  "Get:1 http://deb.debian.org/debian bookworm/main amd64 redis-server amd64 5:7.0.15-1 [72.4 kB]",
		"longest": fmt.Sprint("x=", strings.Repeat("abcdefg=", 8<<10)),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				HideSecrets(text)
			}
		})
	}
}

// FuzzSanitize checks that any output of hooks is accepted and becomes harmless.
func FuzzSanitize(f *testing.F) {
	for _, seed := range []string{`"password"="x" (was "y")`, `a://u:p@h`, "password: x\n", `"{\"token\": \"x\"}"`, `x;pwd=y`, `--key 'v`, "\x1b\u202e\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := Escape(HideSecrets(text)); strings.IndexFunc(got, isHarmful) >= 0 {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}

func TestLosesBytes(t *testing.T) {
	for value, want := range map[string]bool{
		"plain": false, "\xff": true, "a\xffb": true, "\ufffd": false, `\ufffd`: false, `\\ufffd`: false, "\\\xff": true, "": false,
	} {
		t.Run(value, func(t *testing.T) {
			encoded, err := json.Marshal(map[string]any{value: []any{value}})
			if got := LosesBytes(encoded); err != nil || got != want {
				t.Errorf("%s: %t, %v", encoded, got, err)
			}
		})
	}
}
