"""Keys of cryptography: derived, signed and checked between ranks; ciphers and tokens."""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from mpi4py import MPI

comm = MPI.COMM_WORLD
seed = hashlib.sha256(f"rank {comm.rank}".encode()).digest()
secret = x25519.X25519PrivateKey.from_private_bytes(seed)
public = comm.allgather(secret.public_key().public_bytes_raw())
shared = [secret.exchange(x25519.X25519PublicKey.from_public_bytes(one)) for one in public]
key = [HKDF(hashes.SHA256(), 32, None, b"mpi").derive(one) for one in shared]
print(comm.rank, [one.hex()[:8] for one in key])
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
sealed = AESGCM(key[right]).encrypt(bytes(12), f"from {comm.rank}".encode(), b"header")
received = comm.sendrecv(sealed, right, source=left)
print(comm.rank, AESGCM(key[left]).decrypt(bytes(12), received, b"header").decode())
try:
    AESGCM(key[left]).decrypt(bytes(12), received, b"other")
except InvalidTag as error:
    print(comm.rank, type(error).__name__)
signer = ed25519.Ed25519PrivateKey.from_private_bytes(seed)
signatures = comm.allgather((signer.public_key().public_bytes_raw(), signer.sign(b"text")))
for owner, signature in signatures:
    ed25519.Ed25519PublicKey.from_public_bytes(owner).verify(signature, b"text")
try:
    ed25519.Ed25519PublicKey.from_public_bytes(signatures[left][0]).verify(
        signatures[left][1], b"x"
    )
except InvalidSignature:
    print(comm.rank, "refused", len(signatures))
encryptor = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()
print(comm.rank, (encryptor.update(b"a" * 100) + encryptor.finalize()).hex()[-16:])
token = comm.bcast(Fernet(Fernet.generate_key()).encrypt(b"x") if comm.rank == 0 else None)
try:
    Fernet(Fernet.generate_key()).decrypt(token)
except InvalidToken:
    print(comm.rank, "no token of ours", len(token))
pem = signer.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
print(comm.rank, serialization.load_pem_public_key(pem) == signer.public_key())
