// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/rankproof.h"

#include "core/base/diagnostic.h"

#include <algorithm>
#include <cstring>
#include <sodium.h>
#include <type_traits>
#include <vector>

namespace pipewright {

namespace {

static_assert(std::tuple_size_v<RankKey> == crypto_auth_KEYBYTES && std::tuple_size_v<RankProof> == crypto_auth_BYTES);

void requireSodium()
{
    if (sodium_init() < 0)
        throw Error("ranks", "no random numbers can be had here", "let libsodium read /dev/urandom");
}

template<typename T>
void append(std::vector<unsigned char>& text, const T& value)
{
    static_assert(std::is_trivially_copyable_v<T>);
    const std::size_t at = text.size();
    text.resize(at + sizeof value);
    std::memcpy(text.data() + at, &value, sizeof value);
}

std::vector<unsigned char> textOf(Prover who, const RankConversation& of)
{
    std::vector<unsigned char> text;
    append(text, who);
    append(text, of.comer);
    append(text, of.listener);
    append(text, of.comersNonce);
    append(text, of.listenersNonce);
    if (who == Prover::Comer)
        append(text, of.port);
    return text;
}

} // namespace

RankKey rankKey(const std::string& secret, int size, int port)
{
    requireSodium();
    std::vector<unsigned char> run;
    append(run, std::array<char, 17>{"pipewright ranks"});
    append(run, std::int32_t{size});
    append(run, std::int32_t{port});
    // A key of crypto_generichash has 16 to 64 bytes, as a secret does.
    RankKey key{};
    if (crypto_generichash(key.data(), key.size(), run.data(), run.size(),
                           reinterpret_cast<const unsigned char*>(secret.data()), secret.size())
        != 0)
        throw Error("ranks", "the secret has " + std::to_string(secret.size()) + " characters", "use 16 to 64");
    return key;
}

RankNonce freshNonce()
{
    requireSodium();
    RankNonce nonce{};
    randombytes_buf(nonce.data(), nonce.size());
    return nonce;
}

RankProof prove(Prover who, const RankConversation& of, const RankKey& key)
{
    const std::vector<unsigned char> text = textOf(who, of);
    RankProof proof{};
    crypto_auth(proof.data(), text.data(), text.size(), key.data());
    return proof;
}

bool isProof(const RankProof& proof, Prover who, const RankConversation& of, const RankKey& key)
{
    const std::vector<unsigned char> text = textOf(who, of);
    return crypto_auth_verify(proof.data(), text.data(), text.size(), key.data()) == 0;
}

} // namespace pipewright
