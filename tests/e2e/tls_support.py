"""Certificates for the tests of TLS, made by the command openssl."""
import shutil
import subprocess

from support import Skip, temp


def openssl(*words):
    if shutil.which("openssl") is None:
        raise Skip("there is no command openssl")
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=temp)


def key(name):
    path = temp / f"{name}.key"
    if not path.exists():
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path)
    return path


def authority(name):
    """A CA's certificate."""
    path = temp / f"{name}.crt"
    if not path.exists():
        openssl("req", "-x509", "-new", "-key", key(name), "-subj", f"/CN={name}", "-days", "30", "-out", path,
                "-addext", "basicConstraints=critical,CA:TRUE")
    return path


def certificate(name, ca="ca", names="IP:127.0.0.1", days=30):
    """Signed by a CA; negative days: expired."""
    path = temp / f"{name}.crt"
    if not path.exists():
        request, extensions = temp / f"{name}.csr", temp / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\n")
        openssl("req", "-new", "-key", key(name), "-subj", f"/CN={name}", "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", authority(ca), "-CAkey", key(ca), "-CAcreateserial",
                "-days", days, "-extfile", extensions, "-out", path)
    return path


def own(name, **more):
    """The options of a listener with this certificate."""
    return ["--tls-cert", certificate(name, **more), "--tls-key", key(name)]


def trusted(ca="ca"):
    return ["--tls-ca", authority(ca)]
